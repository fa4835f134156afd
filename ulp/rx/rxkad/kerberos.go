package rxkad

import (
	"fmt"
	"io"
	"strings"

	"urnic/ulp/rx/rxkad/krb5"
)

// kerberosNever is the end of a ticket that does not end: the last second of 32 bits with
// a sign, as OpenAFS makes them.
const kerberosNever = 1<<31 - 1

// openKerberosTicket opens a ticket whose encrypted part needs one of the keys, and
// returns the version of that key too.
func (k *Keyring) openKerberosTicket(version uint32, ticket []byte) (c Contents, key uint32, err error) {
	var part krb5.EncryptedData
	if version == VersionKerberos {
		var t krb5.Ticket
		t, err = krb5.ParseTicket(ticket)
		part = t.Part
	} else {
		part, err = krb5.ParseEncryptedData(ticket)
	}
	if err != nil {
		return c, 0, &Error{CodeBadTicket, err}
	}
	kerberos, err := k.kerberos(part.Version, part.Enctype)
	if err != nil {
		return c, part.Version, err
	}
	plain, err := kerberos.Decrypt(krb5.UsageTicket, part.Cipher)
	if err != nil {
		return c, part.Version, &Error{CodeBadTicket, err}
	}
	says, err := krb5.ParseEncTicketPart(plain)
	if err != nil {
		return c, part.Version, &Error{CodeBadTicket, err}
	}
	c, err = kerberosContents(&says)
	return c, part.Version, err
}

// kerberosContents translates what a Kerberos ticket says.
func kerberosContents(says *krb5.EncTicketPart) (c Contents, err error) {
	names := says.Client.Components
	if len(names) < 1 || len(names) > 2 {
		return c, fail(CodeBadTicket, "a client's name of %d components: one or two can be a user and an instance", len(names))
	}
	// AFS writes both user.instance and user/instance as user.instance.
	if strings.Contains(names[0], ".") {
		return c, fail(CodeBadTicket, "the client's name %q has a dot", names[0])
	}
	c.Name = names[0]
	if len(names) == 2 {
		c.Instance = names[1]
	}
	c.Realm = says.Realm
	if err := c.checkNames(); err != nil {
		return c, &Error{CodeBadTicket, err}
	}
	if c.SessionKey, err = DeriveKey(says.KeyType, says.SessionKey); err != nil {
		return c, err
	}
	start := says.StartTime
	if start.IsZero() {
		start = says.AuthTime
	}
	if start.Unix() != 0 {
		c.Start = start
	}
	if says.EndTime.Unix() < never {
		c.End = says.EndTime
	}
	if says.Flags&krb5.FlagInvalid != 0 {
		return c, fail(CodeNoAuth, "the ticket is flagged as invalid")
	}
	return c, nil
}

// makeKerberosTicket makes a ticket's encrypted part.
func makeKerberosTicket(k *krb5.Key, version uint32, c *Contents, rand io.Reader) ([]byte, error) {
	start, err := startSeconds(c.Start)
	if err != nil {
		return nil, err
	}
	end := fromSeconds(kerberosNever)
	switch {
	case !c.End.IsZero():
		end = c.End
	case start != 0:
		return nil, fmt.Errorf("rxkad: a Kerberos ticket without an end, valid from %s, would be for more than 30 days: give an end, or no start", stamp(c.Start))
	}
	if s := end.Unix(); s <= int64(start) || s >= never {
		return nil, fmt.Errorf("rxkad: a ticket can't be valid from %s to %s", stamp(c.Start), stamp(c.End))
	}
	client := krb5.Principal{Type: krb5.TypePrincipal, Components: []string{c.Name}}
	if c.Instance != "" {
		client.Components = append(client.Components, c.Instance)
	}
	says := krb5.EncTicketPart{
		Flags:      krb5.FlagTransitedChecked,
		KeyType:    krb5.DESCBCCRC,
		SessionKey: c.SessionKey[:],
		Realm:      c.Realm,
		Client:     client,
		AuthTime:   fromSeconds(start),
		EndTime:    end,
	}
	cipher, err := k.Encrypt(rand, krb5.UsageTicket, says.Marshal())
	if err != nil {
		return nil, err
	}
	return krb5.EncryptedData{Enctype: k.Enctype(), Version: version, Cipher: cipher}.Marshal(), nil
}

// checkNames reports names that no ticket can have.
func (c *Contents) checkNames() error {
	for _, name := range []struct{ of, is string }{
		{"name", c.Name},
		{"instance", c.Instance},
		{"realm", c.Realm},
		{"service's name", c.Service},
		{"service's instance", c.ServiceInstance},
	} {
		if len(name.is) > maxName {
			return fmt.Errorf("the %s has %d bytes, more than %d", name.of, len(name.is), maxName)
		}
		if strings.ContainsRune(name.is, 0) {
			return fmt.Errorf("the %s %q has a zero byte", name.of, name.is)
		}
	}
	if c.Name == "" {
		return fmt.Errorf("the name is empty")
	}
	return nil
}
