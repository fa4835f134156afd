package machine

// A world is what a simulation is of: a carrier, and what its peers are like.
type world struct {
	name    string
	carrier Carrier
	credits int // receives that each side has posted; 0: no flow control
	peers   peers
}

// peers are what each node finds the others to be.
type peers uint8

const (
	urnics   peers = iota
	linuxes        // they tell no generation, and 8 paths: as Linux 6.1
	newLinux       // they tell their generation and that their ports tell the path, and TCP acknowledges for them
)

var carriers = map[string]Carrier{
	"iwarp":     {Name: "iwarp", Fragment: 1024, Acks: true, Paths: 1, Introduces: true, Operations: true},
	"probed":    {Name: "probed", Fragment: 1024, Acks: true, Paths: 1},
	"tcp":       {Name: "tcp", Paths: 1, OrderedDial: true},
	"multipath": {Name: "tcp", Paths: 4, OrderedDial: true},
}

var worlds = []world{
	{name: "iwarp", carrier: carriers["iwarp"]},
	{name: "iwarp with credits", carrier: carriers["iwarp"], credits: 5},
	{name: "probed, with few credits", carrier: carriers["probed"], credits: 3},
	{name: "iwarp with Linux", carrier: carriers["iwarp"], peers: linuxes},
	{name: "tcp", carrier: carriers["tcp"]},
	{name: "tcp, 4 paths", carrier: carriers["multipath"]},
	{name: "tcp with Linux", carrier: carriers["tcp"], peers: linuxes},
	{name: "tcp with Linux, 4 paths", carrier: carriers["multipath"], peers: linuxes},
	{name: "tcp with a newer Linux, 4 paths", carrier: carriers["multipath"], peers: newLinux},
}
