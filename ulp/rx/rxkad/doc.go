// Package rxkad is the security class of AFS: index 2. A client proves by a ticket who it
// is, and both sides then share the session key in the ticket.
//
// A server challenges a client that it does not know. The client responds with its ticket
// and with what only the session key's owner can encrypt. From then on each data packet has
// a checksum over its place in the connection (level [Clear]), or an encrypted header
// (level [Auth]), or nothing that is not encrypted (level [Crypt]). The cipher is that of
// package fcrypt.
//
// Tickets are old ones, encrypted with DES, or Kerberos 5 ones, see package krb5. Their
// keys are in a [Keyring], which reads OpenAFS's KeyFile and KeyFileExt. The owner of a
// service's keys can also make tickets ([Keyring.Forge]): there is no Kerberos here.
//
//	keys := new(rxkad.Keyring)
//	err := keys.LoadKeyFileExt(file)
//	server, err := rxkad.NewServer(rxkad.ServerConfig{Keys: keys, Level: rxkad.Auth})
//
//	ticket, err := keys.Forge(rxkad.Contents{Name: rxkad.Superuser}, nil)
//	client, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: ticket, Level: rxkad.Crypt})
//
// Both implement the interfaces of package secure. [OpenResponse] opens recorded traffic.
//
// fcrypt has keys of 56 bits, and bodies have no message authentication code: rxkad keeps
// out those who make mistakes. It is here because it is what peers speak.
package rxkad
