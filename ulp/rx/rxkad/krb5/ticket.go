package krb5

// An EncryptedData is a ciphertext with what is needed to find its key (RFC 4120 §5.2.9).
type EncryptedData struct {
	Enctype Enctype
	Version uint32 // of the key; 0 if it is not given
	Cipher  []byte
}

// ParseEncryptedData reads an EncryptedData. Its Cipher aliases b.
func ParseEncryptedData(b []byte) (EncryptedData, error) {
	body, err := der(b).only(tagSequence)
	if err != nil {
		return EncryptedData{}, err
	}
	return body.encryptedData()
}

func (d der) encryptedData() (e EncryptedData, err error) {
	body, err := d.field(0, tagInteger) // etype
	if err != nil {
		return e, err
	}
	enctype, err := body.int32()
	if err != nil {
		return e, err
	}
	e.Enctype = Enctype(enctype)

	body, there, err := d.optional(1, tagInteger) // kvno
	if err != nil {
		return e, err
	}
	if there {
		version, err := body.integer()
		if err != nil {
			return e, err
		}
		e.Version = uint32(version)
	}

	body, err = d.field(2, tagOctetString) // cipher
	e.Cipher = body
	return e, err
}

// Marshal returns the DER form of e.
func (e EncryptedData) Marshal() []byte {
	enctype := field(0, integer(int64(e.Enctype)))
	var version []byte
	if e.Version != 0 {
		version = field(1, integer(int64(e.Version)))
	}
	cipher := field(2, element(tagOctetString, e.Cipher))
	return element(tagSequence, enctype, version, cipher)
}

// A Ticket is a whole ticket (RFC 4120 §5.3). What it says to the service is encrypted;
// the names in front are for the client.
type Ticket struct {
	Realm   string    // of the service
	Service Principal // its name
	Part    EncryptedData
}

// ParseTicket reads a Ticket. Its Part aliases b.
func ParseTicket(b []byte) (t Ticket, err error) {
	application, err := der(b).only(tagApplication | 1)
	if err != nil {
		return t, err
	}
	d, err := application.only(tagSequence)
	if err != nil {
		return t, err
	}
	body, err := d.field(0, tagInteger) // tkt-vno
	if err != nil {
		return t, err
	}
	if version, err := body.integer(); err != nil || version != 5 {
		return t, syntax("a ticket of version %d", version)
	}
	body, err = d.field(1, tagGeneralString) // realm
	if err != nil {
		return t, err
	}
	t.Realm = string(body)
	body, err = d.field(2, tagSequence) // sname
	if err != nil {
		return t, err
	}
	if t.Service, err = body.principal(); err != nil {
		return t, err
	}
	body, err = d.field(3, tagSequence) // enc-part
	if err != nil {
		return t, err
	}
	t.Part, err = body.encryptedData()
	return t, err
}

// Marshal returns the DER form of t.
func (t Ticket) Marshal() []byte {
	return element(tagApplication|1, element(tagSequence,
		field(0, integer(5)),
		field(1, generalString(t.Realm)),
		field(2, t.Service.marshal()),
		field(3, t.Part.Marshal())))
}

// A Principal is the name of somebody in a realm (RFC 4120 §5.2.2).
type Principal struct {
	Type       int32 // of the name: 1 for users and services
	Components []string
}

// TypePrincipal is the type of ordinary names.
const TypePrincipal = 1

// maxComponents is more than any name has: those of services have two.
const maxComponents = 16

func (d der) principal() (p Principal, err error) {
	body, err := d.field(0, tagInteger) // name-type
	if err != nil {
		return p, err
	}
	if p.Type, err = body.int32(); err != nil {
		return p, err
	}
	body, err = d.field(1, tagSequence) // name-string
	if err != nil {
		return p, err
	}
	for len(body) > 0 {
		component, err := body.expect(tagGeneralString)
		if err != nil {
			return p, err
		}
		if len(p.Components) == maxComponents {
			return p, syntax("a name of more than %d components", maxComponents)
		}
		p.Components = append(p.Components, string(component))
	}
	return p, nil
}

func (p Principal) marshal() []byte {
	components := make([][]byte, len(p.Components))
	for i, c := range p.Components {
		components[i] = generalString(c)
	}
	return element(tagSequence,
		field(0, integer(int64(p.Type))),
		field(1, element(tagSequence, components...)))
}
