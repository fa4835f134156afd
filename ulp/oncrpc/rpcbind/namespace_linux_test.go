package rpcbind_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/oncrpc/rpcbind/rpcbindtest"
)

func TestServiceOfTheDistribution(t *testing.T) {
	if !rpcbindtest.Alone(t, "rpcbind") {
		return
	}
	rpcbindtest.Start(t, "-i")
	c := client("127.0.0.1:" + rpcbind.Port)
	defer c.Close()
	if err := exercise(t.Context(), c); err != nil {
		t.Error(err)
	}
}

func TestRpcinfoAsksServiceOfOurOwn(t *testing.T) {
	if !rpcbindtest.Alone(t, "rpcinfo") {
		return
	}
	table := rpcbind.NewTable(0)
	for _, version := range []uint32{2, 3, 4} {
		if err := table.Add(rpcbind.Mapping{Program: rpcbind.Program, Version: version, Netid: rpcbind.TCP, Addr: "0.0.0.0.0.111", Owner: "urnic"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Add(rpcbind.Mapping{Program: 100003, Version: 3, Netid: rpcbind.RDMA, Addr: "0.0.0.0.78.81", Owner: "urnic"}); err != nil {
		t.Fatal(err)
	}
	serve(t, table, "127.0.0.1:"+rpcbind.Port)
	for _, c := range []struct{ args, want string }{
		{"-p 127.0.0.1", `100000 +4 +tcp +111`},
		{"-T tcp 127.0.0.1 100000 3", `program 100000 version 3 ready and waiting`},
		{"-T tcp 127.0.0.1 100000", `version 2 ready and waiting\n.*version 3 ready and waiting\n.*version 4 ready and waiting`},
		{"-T tcp -a 127.0.0.1.0.111 100000 4", `program 100000 version 4 ready and waiting`},
		{"127.0.0.1", `100003 +3 +rdma +0\.0\.0\.0\.78\.81 +nfs +urnic`},
		{"-s 127.0.0.1", `100000 +2,3,4 +tcp +portmapper +urnic`},
		{"-l 127.0.0.1 100000 4", `100000 +4 +inet/tcp/cots_ord +127\.0\.0\.1\.0\.111`},
	} {
		out, err := exec.CommandContext(t.Context(), rpcbindtest.Find("rpcinfo"), strings.Fields(c.args)...).CombinedOutput()
		if err != nil || !regexp.MustCompile(c.want).Match(out) {
			t.Errorf("rpcinfo %s: %v\n%s", c.args, err, out)
		}
	}
}
