package rnictimeline_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"urnic/rnic"
	"urnic/rnic/rnictimeline"
)

// A program records its work requests. `urnic timeline` makes a page of the directory.
func Example() {
	dir, err := os.MkdirTemp("", "urnic-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var cfg rnic.Config
	rec, err := rnictimeline.Start(dir, &cfg)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := rnic.Open(cfg)
	if err != nil {
		log.Fatal(err)
	}
	domain, _ := dev.AllocPD()
	cq, _ := dev.CreateCQ(rnic.CQAttr{})
	qp, err := domain.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		log.Fatal(err)
	}
	if err := rec.PostRecv(qp, rnic.RecvWR{ID: 1}); err != nil {
		log.Fatal(err)
	}
	qp.Abort() // in place of a connection: the receive is flushed
	var wcs [1]rnic.WC
	fmt.Println(rec.Poll(cq, wcs[:]), wcs[0].Status)
	if err := dev.Close(); err != nil {
		log.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		log.Fatal(err)
	}

	names, _ := filepath.Glob(dir + "/*.events")
	f, err := os.Open(names[0])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	events, err := rnictimeline.ReadEvents(f)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(events), events[0].Kind == rnictimeline.PostedRecv, events[1].Kind == rnictimeline.Polled)
	// Output:
	// 1 flushed
	// 2 true true
}
