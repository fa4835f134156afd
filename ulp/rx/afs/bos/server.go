package bos

import (
	"context"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Config says how a Machine is served.
type Config struct {
	// Admin says who may change the machine and see its keys. Nobody may if it is nil.
	Admin afs.Admin
}

// NewMux serves a Machine.
func NewMux(machine *Machine, c Config) *rpc.Mux {
	m := rpc.NewMux("bos")
	opEnumerate.Handle(m, func(_ context.Context, a *rpc.Int32) (String, error) { return name(machine.Process(int32(*a))) })
	opState.Handle(m, func(_ context.Context, a *String) (State, error) {
		i, err := machine.Info(string(*a))
		return State{Number: i.Goal}, err
	})
	opInfo.Handle(m, func(_ context.Context, a *String) (Info, error) { return machine.Info(string(*a)) })
	opParameter.Handle(m, func(_ context.Context, a *Named) (String, error) { return name(machine.Parameter(a.Name, a.Number)) })
	opStrings.Handle(m, func(_ context.Context, a *String) (Strings, error) {
		_, err := machine.Info(string(*a))
		return Strings{}, err
	})
	opUser.Handle(m, func(_ context.Context, a *rpc.Int32) (String, error) { return name(machine.User(int32(*a))) })
	opCell.Handle(m, func(context.Context, *rpc.Void) (String, error) { return String(machine.cell), nil })
	opHost.Handle(m, func(_ context.Context, a *rpc.Uint32) (String, error) {
		return name(at(machine.hosts, int32(*a), ErrRange))
	})
	opDates.Handle(m, func(context.Context, *String) (Dates, error) { return Dates{}, nil }) // no file was ever installed
	opRestart.Handle(m, func(context.Context, *rpc.Int32) (RestartTime, error) { return RestartTime{Mask: Never}, nil })
	opRestricted.Handle(m, func(context.Context, *rpc.Void) (rpc.Int32, error) { return 0, nil })
	opKey.Handle(m, admin(c, func(a *rpc.Int32) (Key, error) { return at(machine.keys, int32(*a), ErrRange) }))
	opCreate.Handle(m, admin(c, func(a *CreateArgs) (rpc.Void, error) { return rpc.Void{}, machine.Create(*a) }))
	opDelete.Handle(m, admin(c, func(a *String) (rpc.Void, error) { return rpc.Void{}, machine.Delete(string(*a)) }))
	opSet.Handle(m, admin(c, func(a *Named) (rpc.Void, error) { return rpc.Void{}, machine.Set(a.Name, a.Number, false) }))
	opSetNow.Handle(m, admin(c, func(a *Named) (rpc.Void, error) { return rpc.Void{}, machine.Set(a.Name, a.Number, true) }))
	opAddUser.Handle(m, admin(c, func(a *String) (rpc.Void, error) { return rpc.Void{}, machine.AddUser(string(*a)) }))
	opDeleteUser.Handle(m, admin(c, func(a *String) (rpc.Void, error) { return rpc.Void{}, machine.DeleteUser(string(*a)) }))
	return m
}

func name(s string, err error) (String, error) { return String(s), err }

// admin is the handler of an operation that is for administrators only.
func admin[A, R any](c Config, f func(*A) (R, error)) func(context.Context, *A) (R, error) {
	return func(ctx context.Context, a *A) (R, error) {
		if !c.Admin.Allows(ctx) {
			var none R
			return none, ErrAccess
		}
		return f(a)
	}
}
