// Package krb5 is the little of Kerberos 5 that rxkad needs: tickets are opened and made
// with a service's key. It asks no key distribution centre for anything.
//
// A ticket of an AFS service is encrypted with one of the service's keys. [NewKey] takes
// such a key, of the type aes128-cts-hmac-sha1-96 or aes256-cts-hmac-sha1-96 (RFC 3962);
// [Key.Decrypt] and [Key.Encrypt] derive from it what the key usage calls for (RFC 3961
// §5). What is encrypted is parsed by [ParseEncTicketPart]; around it are an
// [EncryptedData] and, in whole tickets, a [Ticket] (RFC 4120 §5.2.9, §5.3).
//
// The package uses nothing but the standard library. The Kerberos libraries for Go do
// far more, and the best known one, gokrb5, is no longer maintained: that is too much to
// depend on for two algorithms and three structures.
//
// Other types of keys are not supported: single DES and RC4 have been withdrawn (RFC
// 6649, RFC 8429).
package krb5
