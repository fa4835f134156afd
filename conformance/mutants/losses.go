package mutants

// losses crash or hang the target: no case can judge it from then on, and the run must say
// that it was lost, and not that it has passed.
var losses = []Mutant{
	{
		Name:    "crash-on-empty-read",
		Fault:   "A Read Request for no bytes crashes the process.",
		Clauses: []string{"rfc5040-5.2.1-13"},
		Loss:    Crash,
		Edits: one("rdmap/stream_recv.go", `	if req.Size > 0 { // an empty one is not checked: §5.2.1
`, `	if req.Size == 0 {
		go panic("a Read of nothing")
	}
	if req.Size > 0 { // an empty one is not checked: §5.2.1
`),
	},
	{
		Name:    "exit-on-empty-send",
		Fault:   "A Send of no bytes ends the process, as if all were well.",
		Clauses: []string{"rfc5040-5.3-6"},
		Loss:    Crash,
		Edits: []Edit{
			{"rdmap/stream_recv.go", `	r.traceUntagged(h, length) // before what it causes
`, `	if length == 0 {
		os.Exit(0)
	}
	r.traceUntagged(h, length) // before what it causes
`},
			{"rdmap/stream_recv.go", `	"fmt"
	"unsafe"
`, `	"fmt"
	"os"
	"unsafe"
`},
		},
	},
	{
		Name:    "stop-on-crc-error",
		Fault:   "A wrong CRC stops the process: it is there, and answers nobody.",
		Clauses: []string{"rfc5044-8-2"},
		Loss:    Hang,
		Edits: []Edit{
			{"mpa/deframer.go", `			return nil, 0, &Error{
				Code: CodeCRC,`, `			_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
			return nil, 0, &Error{
				Code: CodeCRC,`},
			{"mpa/deframer.go", `	"fmt"
)`, `	"fmt"
	"syscall"
)`},
		},
	},
	{
		Name:    "deadlock-on-crc-error",
		Fault:   "A wrong CRC leaves a lock taken that each connection wants when it starts and when it receives.",
		Clauses: []string{"rfc5044-8-2"},
		Loss:    Hang,
		Edits: []Edit{
			{"mpa/deframer.go", `			return nil, 0, &Error{
				Code: CodeCRC,`, `			everywhere.Lock()
			return nil, 0, &Error{
				Code: CodeCRC,`},
			{"mpa/deframer.go", `	"fmt"
)`, `	"fmt"
	"sync"
)

var everywhere sync.Mutex`},
			{"mpa/deframer.go", `	fpdu := b[:total]
	// The CRC`, `	everywhere.Lock()
	everywhere.Unlock()
	fpdu := b[:total]
	// The CRC`},
			{"mpa/startup.go", `	if err := checkArguments(ctx, conn, &cfg); err != nil {
		return nil, err
	}
	req, err := cfg.request()
`, `	everywhere.Lock()
	everywhere.Unlock()
	if err := checkArguments(ctx, conn, &cfg); err != nil {
		return nil, err
	}
	req, err := cfg.request()
`},
			{"mpa/startup.go", `func receiveRequest(ctx context.Context, conn net.Conn, cfg Config) (*Request, error) {
`, `func receiveRequest(ctx context.Context, conn net.Conn, cfg Config) (*Request, error) {
	everywhere.Lock()
	everywhere.Unlock()
`},
		},
	},
}
