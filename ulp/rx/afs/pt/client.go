package pt

import (
	"context"
	"strings"

	"urnic/ulp/rx/rpc"
)

// A Client asks a protection server.
type Client struct{ c rpc.Client }

// NewClient returns a client whose calls begin begins: see rpc.Over.
func NewClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: Codes}}
}

// CreateUser makes a user and returns its ID: the given one, or one that the server chooses
// if that is 0.
func (c *Client) CreateUser(ctx context.Context, name string, id int32) (int32, error) {
	return c.create(ctx, name, id, 0, 0)
}

// CreateGroup makes a group and returns its ID: the given one, or one that the server chooses
// if that is 0. It is the caller's if owner is 0.
func (c *Client) CreateGroup(ctx context.Context, name string, id, owner int32) (int32, error) {
	return c.create(ctx, name, id, newGroup, owner)
}

func (c *Client) create(ctx context.Context, name string, id, flags, owner int32) (int32, error) {
	name = strings.ToLower(name)
	if id != 0 {
		_, err := opCreate.Call(ctx, &c.c, &CreateArgs{name, id, owner})
		return id, err
	}
	n, err := opNew.Call(ctx, &c.c, &NewArgs{name, flags, owner})
	return int32(n), err
}

// Delete deletes a user or a group.
func (c *Client) Delete(ctx context.Context, id int32) error {
	_, err := opDelete.Call(ctx, &c.c, new(rpc.Int32(id)))
	return err
}

// AddToGroup makes a user a member of a group.
func (c *Client) AddToGroup(ctx context.Context, user, group int32) error {
	_, err := opAddToGroup.Call(ctx, &c.c, &Pair{user, group})
	return err
}

// RemoveFromGroup ends a user's membership of a group.
func (c *Client) RemoveFromGroup(ctx context.Context, user, group int32) error {
	_, err := opRemoveFromGroup.Call(ctx, &c.c, &Pair{user, group})
	return err
}

// NamesToIDs returns the IDs of names, in their order. The ID of an unknown name is Anonymous.
func (c *Client) NamesToIDs(ctx context.Context, names []string) ([]int32, error) {
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(name)
	}
	ids, err := opNamesToIDs.Call(ctx, &c.c, &Names{lower})
	return ids.IDs, err
}

// IDsToNames returns the names of IDs, in their order. The name of an unknown ID is its
// number.
func (c *Client) IDsToNames(ctx context.Context, ids []int32) ([]string, error) {
	names, err := opIDsToNames.Call(ctx, &c.c, &IDs{ids})
	return names.Names, err
}

// ListMax returns the IDs behind which the server chooses new ones.
func (c *Client) ListMax(ctx context.Context) (Maxima, error) {
	return opListMax.Call(ctx, &c.c, &rpc.Void{})
}

// SetMax sets an ID behind which the server chooses new ones of users or of groups.
func (c *Client) SetMax(ctx context.Context, id int32, group bool) error {
	_, err := opSetMax.Call(ctx, &c.c, &SetMaxArgs{id, group})
	return err
}

// Entry returns a user or a group.
func (c *Client) Entry(ctx context.Context, id int32) (Entry, error) {
	return opListEntry.Call(ctx, &c.c, new(rpc.Int32(id)))
}

// Entries returns all users, groups or both, for administrators.
func (c *Client) Entries(ctx context.Context, which int32) ([]Entry, error) {
	var all []Entry
	for start := int32(0); ; {
		part, err := opListEntries.Call(ctx, &c.c, &EntriesArgs{which, start})
		if err != nil {
			return all, err
		}
		if all = append(all, part.Entries...); len(all) > MaxList {
			return nil, ErrTooMany
		}
		if part.Next <= start { // -1 at the end; a server that does not continue has ended, too
			return all, nil
		}
		start = part.Next
	}
}

// Change gives a user or a group another name, owner or ID. What is empty or zero stays.
func (c *Client) Change(ctx context.Context, id int32, name string, owner, newID int32) error {
	_, err := opChange.Call(ctx, &c.c, &ChangeArgs{id, strings.ToLower(name), owner, newID})
	return err
}

// SetFields sets those of an entry's flags that are in mask, and its quotas if mask has
// SetGroupQuota or SetForeignQuota.
func (c *Client) SetFields(ctx context.Context, f FieldsArgs) error {
	_, err := opSetFields.Call(ctx, &c.c, &f)
	return err
}

// Elements returns the members of a group, or the groups of a user.
func (c *Client) Elements(ctx context.Context, id int32) ([]int32, error) {
	l, err := opListElements.Call(ctx, &c.c, new(rpc.Int32(id)))
	return l.IDs, err
}

// Owned returns the groups that a user or a group owns, or those that nobody owns for 0.
func (c *Client) Owned(ctx context.Context, id int32) ([]int32, error) {
	var all []int32
	for last := int32(0); ; {
		part, err := opListOwned.Call(ctx, &c.c, &OwnedArgs{id, last})
		if err != nil {
			return all, err
		}
		if all = append(all, part.IDs...); part.More == 0 || len(part.IDs) == 0 {
			return all, nil
		}
		if len(all) > MaxList {
			return nil, ErrTooMany
		}
		last = part.More
	}
}

// IsMember reports whether a user belongs to a group.
func (c *Client) IsMember(ctx context.Context, user, group int32) (bool, error) {
	yes, err := opIsMember.Call(ctx, &c.c, &Pair{user, group})
	return yes != 0, err
}

// CPS returns all IDs that count when the rights of a user are determined (the current
// protection subdomain): its own, and those of its groups.
func (c *Client) CPS(ctx context.Context, id int32) ([]int32, error) {
	l, err := opGetCPS.Call(ctx, &c.c, new(rpc.Int32(id)))
	return l.IDs, err
}
