package rnicinfo_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"urnic/rnic"
	"urnic/rnic/rnicinfo"
)

// A program lets urnic top see its device; this one looks for itself.
func Example() {
	dir, err := os.MkdirTemp("", "urnic-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	server, err := rnicinfo.Serve(dev, "my program", filepath.Join(dir, "sockets")) // "" is where urnic top looks
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	domain, err := dev.AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	mr, err := domain.Register(make([]byte, 4096), rnic.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	server.Show(mr)

	answers, _, err := rnicinfo.Gather(context.Background(), filepath.Join(dir, "sockets"), time.Second)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range answers {
		d := a.Report.Device
		fmt.Printf("%s: %s, %d QPs, an MR of %d bytes with %s\n", a.Report.Command, d.Name, len(d.QPs), d.MRs[0].Length, d.MRs[0].Access)
	}
	// Output: my program: urnic0, 0 QPs, an MR of 4096 bytes with local write
}
