package bos

import (
	"context"
	"errors"

	"urnic/ulp/rx/rpc"
)

// A Client asks an overseer.
type Client struct{ c rpc.Client }

// NewClient returns a client whose calls begin begins: see rpc.Over.
func NewClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: Codes}}
}

const maxListed = 1000 // elements of a list

// list calls get with indices until it fails behind the last one.
func list[T any](get func(i int32) (T, error), ends ...error) ([]T, error) {
	var all []T
	for i := range int32(maxListed) {
		v, err := get(i)
		for _, end := range ends {
			if errors.Is(err, end) {
				return all, nil
			}
		}
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Processes returns the names of the processes.
func (c *Client) Processes(ctx context.Context) ([]string, error) {
	return list(func(i int32) (string, error) {
		name, err := opEnumerate.Call(ctx, &c.c, new(rpc.Int32(i)))
		return string(name), err
	}, ErrRange)
}

// State returns the state of a process.
func (c *Client) State(ctx context.Context, name string) (State, error) {
	return opState.Call(ctx, &c.c, new(String(name)))
}

// Info returns what the overseer knows of a process.
func (c *Client) Info(ctx context.Context, name string) (Info, error) {
	return opInfo.Call(ctx, &c.c, new(String(name)))
}

// Parameters returns the commands of a process.
func (c *Client) Parameters(ctx context.Context, name string) ([]string, error) {
	return list(func(i int32) (string, error) {
		p, err := opParameter.Call(ctx, &c.c, &Named{name, i})
		return string(p), err
	}, ErrRange)
}

// Users returns the administrators.
func (c *Client) Users(ctx context.Context) ([]string, error) {
	return list(func(i int32) (string, error) {
		name, err := opUser.Call(ctx, &c.c, new(rpc.Int32(i)))
		return string(name), err
	}, errNoUser, ErrRange)
}

// Keys returns the keys, for administrators.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	return list(func(i int32) (Key, error) { return opKey.Call(ctx, &c.c, new(rpc.Int32(i))) }, ErrRange)
}

// Cell returns the machine's cell and the hosts of its databases.
func (c *Client) Cell(ctx context.Context) (name string, hosts []string, err error) {
	cell, err := opCell.Call(ctx, &c.c, &rpc.Void{})
	if err != nil {
		return "", nil, err
	}
	hosts, err = list(func(i int32) (string, error) {
		host, err := opHost.Call(ctx, &c.c, new(rpc.Uint32(i)))
		return string(host), err
	}, ErrRange)
	return string(cell), hosts, err
}

// Dates returns when a file was installed.
func (c *Client) Dates(ctx context.Context, path string) (Dates, error) {
	return opDates.Call(ctx, &c.c, new(String(path)))
}

// Create adds a process.
func (c *Client) Create(ctx context.Context, a CreateArgs) error {
	_, err := opCreate.Call(ctx, &c.c, &a)
	return err
}

// Delete removes a process that does not run.
func (c *Client) Delete(ctx context.Context, name string) error {
	_, err := opDelete.Call(ctx, &c.c, new(String(name)))
	return err
}

// Set makes a process run, or not: see Running. With once it is another one after the overseer
// was started again.
func (c *Client) Set(ctx context.Context, name string, state int32, once bool) error {
	op := opSet
	if once {
		op = opSetNow
	}
	_, err := op.Call(ctx, &c.c, &Named{name, state})
	return err
}

// AddUser makes somebody an administrator.
func (c *Client) AddUser(ctx context.Context, name string) error {
	_, err := opAddUser.Call(ctx, &c.c, new(String(name)))
	return err
}

// DeleteUser ends that.
func (c *Client) DeleteUser(ctx context.Context, name string) error {
	_, err := opDeleteUser.Call(ctx, &c.c, new(String(name)))
	return err
}
