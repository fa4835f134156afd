package rxflow

import (
	"sync"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/bos"
	"urnic/ulp/rx/afs/cb"
	"urnic/ulp/rx/afs/fs"
	"urnic/ulp/rx/afs/pt"
	"urnic/ulp/rx/afs/ubik"
	"urnic/ulp/rx/afs/vl"
	"urnic/ulp/rx/afs/vol"
	"urnic/ulp/rx/rpc"
)

// An iface is an interface whose operations have names.
type iface struct {
	name       string
	service    uint16
	port       uint16 // 0: of any
	operations func() []rpc.Description
}

// ifaces are those that are known. Several have the service ID 1.
var ifaces = []iface{
	{"pt", afs.ServicePT, 0, pt.Operations},
	{"vl", afs.ServiceVL, 0, vl.Operations},
	{"vol", afs.ServiceVolume, 0, vol.Operations},
	{"bos", afs.ServiceBos, afs.PortBos, bos.Operations},
	{"fs", afs.ServiceFile, afs.PortFile, fs.Operations},
	{"cb", afs.ServiceCallback, 0, cb.Operations}, // clients take callbacks at any port
	{"ubik", afs.ServiceUbikVote, 0, ubik.Operations},
}

// named are the operations of ifaces by opcode.
var named = sync.OnceValue(func() []map[uint32]string {
	all := make([]map[uint32]string, len(ifaces))
	for i, f := range ifaces {
		all[i] = map[uint32]string{}
		for _, op := range f.operations() {
			all[i][op.Opcode] = f.name + "." + op.Name
		}
	}
	return all
})

// operationName returns the name of an operation of a service on a port, or nothing.
func operationName(service, port uint16, opcode uint32) string {
	for i, f := range ifaces {
		if f.service == service && (f.port == 0 || f.port == port) {
			return named()[i][opcode]
		}
	}
	return ""
}
