// Command prove runs what takes long and depends on some directories only, and records for
// which directories it has passed. "make verify" leaves such a proof out while its record
// holds.
//
//	prove run [NAME...]     run these proofs (all), and record each that passes
//	prove holds NAME        say why the record holds; status 1 and the reason if it does not
//	prove record NAME       record that the proof has passed for what is checked out
//	prove list              list the proofs, and whether their records hold
//
// Some proofs take hours. "make verify" does not run them.
//
// A record is a file in .ci/proved. It names each input of its proof, as a file or a
// directory, with a hash of the names and contents that it has in HEAD, without the
// comments of Go files. It holds while each input has that hash and the checkout does
// not differ from HEAD there, and while the proof has the same command. Records are no
// inputs, so that they can be committed after the proof.
package main
