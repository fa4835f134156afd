package bos

import (
	"slices"
	"sync"
	"time"

	"urnic/ulp/rx/afs"
)

const maxProcesses = 200 // of a machine, and as many administrators

// errNoUser is what OpenAFS's server says behind the last administrator.
var errNoUser = afs.ErrNotPermitted

// A Machine is what an overseer looks after, in memory. Its methods may be called at the same
// time.
type Machine struct {
	mu        sync.Mutex
	cell      string
	hosts     []string
	processes []*process
	users     []string
	keys      []Key
	now       func() time.Time
}

type process struct {
	name       string
	parameters []string
	Info
}

// A MachineConfig describes a Machine.
type MachineConfig struct {
	Cell  string
	Hosts []string // of the cell's databases
	Users []string // administrators
	Keys  []Key
	Now   func() time.Time // the clock: time.Now if nil
}

// NewMachine returns a Machine without processes.
func NewMachine(c MachineConfig) *Machine {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Machine{cell: c.Cell, hosts: c.Hosts, users: slices.Clone(c.Users), keys: c.Keys, now: c.Now}
}

// find returns the process with a name.
func (m *Machine) find(name string) (*process, error) {
	for _, p := range m.processes {
		if p.name == name {
			return p, nil
		}
	}
	return nil, ErrNoEntry
}

// Create adds a process, which seems to run.
func (m *Machine) Create(a CreateArgs) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(a.Name); err == nil {
		return ErrExists
	}
	switch {
	case a.Type != "simple" && a.Type != "fs" && a.Type != "dafs" && a.Type != "cron":
		return ErrBadType
	case a.Name == "" || len(m.processes) >= maxProcesses:
		return ErrNotMade
	}
	p := &process{name: a.Name, Info: Info{Type: a.Type}}
	for _, s := range a.Parameters {
		if s != "" && s != "__NONOTIFIER__" {
			p.parameters = append(p.parameters, s)
		}
	}
	p.set(Running, m.now())
	p.FileGoal = Running
	m.processes = append(m.processes, p)
	return nil
}

func (p *process) set(state int32, now time.Time) {
	switch {
	case state == Running && p.Goal != Running:
		p.Started = afs.TimeOf(now)
		p.Starts++
	case state != Running && p.Goal == Running:
		p.LastExit = afs.TimeOf(now)
	}
	p.Goal = state
}

// Delete removes a process that does not run.
func (m *Machine) Delete(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(name)
	if err != nil {
		return err
	}
	if p.Goal == Running {
		return ErrBusy
	}
	m.processes = slices.DeleteFunc(m.processes, func(o *process) bool { return o == p })
	return nil
}

// Set makes a process seem to run, or not, now or forever.
func (m *Machine) Set(name string, state int32, once bool) error {
	if state != Down && state != Running {
		return afs.ErrInvalid
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(name)
	if err != nil {
		return err
	}
	p.set(state, m.now())
	if !once {
		p.FileGoal = state
	}
	return nil
}

// Info returns what is known of a process.
func (m *Machine) Info(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(name)
	if err != nil {
		return Info{}, err
	}
	return p.Info, nil
}

// Process returns the name of a process.
func (m *Machine) Process(i int32) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := at(m.processes, i, ErrRange)
	if err != nil {
		return "", err
	}
	return p.name, nil
}

// Parameter returns a command of a process.
func (m *Machine) Parameter(name string, i int32) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(name)
	if err != nil {
		return "", err
	}
	return at(p.parameters, i, ErrRange)
}

// User returns the name of an administrator.
func (m *Machine) User(i int32) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return at(m.users, i, errNoUser)
}

// AddUser makes somebody an administrator.
func (m *Machine) AddUser(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case name == "" || len(m.users) >= maxProcesses:
		return afs.ErrInvalid
	case slices.Contains(m.users, name):
		return afs.ErrExists
	}
	m.users = append(m.users, name)
	return nil
}

// DeleteUser ends that.
func (m *Machine) DeleteUser(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.users, name)
	if i < 0 {
		return afs.ErrNoEntry
	}
	m.users = slices.Delete(m.users, i, i+1)
	return nil
}

// at returns an element of a list, or the error for what is behind it.
func at[T any](list []T, i int32, end error) (T, error) {
	if i < 0 || int(i) >= len(list) {
		var none T
		return none, end
	}
	return list[i], nil
}
