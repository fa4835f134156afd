// Package fcrypt is the block cipher of AFS, with which rxkad protects packets: 64-bit
// blocks, keys of 56 bits, 16 rounds.
//
// It has DES's sizes and nothing else of it. Each round adds 32 bits of key to one half
// of the block, replaces each of the four bytes by an S-box, permutes the bits, and adds
// the result to the other half. The halves are not exchanged. The round keys are the low
// 32 bits of the key, which is rotated right by 11 of its 56 bits after each round.
//
// A [Cipher] is made of a key with [New]. Blocks are uint64, whose first byte is the most
// significant. [Cipher.EncryptPCBC] and [Cipher.DecryptPCBC] chain blocks the way rxkad
// does: what AFS calls CBC is PCBC, where each block is combined with both the plaintext
// and the ciphertext of the block before.
//
// A key of 56 bits can be found by trying all of them, and the lookups in tables take a
// time that depends on the key. Use the cipher to speak rxkad, and for nothing else.
package fcrypt
