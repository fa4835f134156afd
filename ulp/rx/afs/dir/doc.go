// Package dir is the format of directories that AFS's file servers send as the content of a
// directory's file.
//
// A directory is pages of 2,048 bytes, each of 64 slots. Slot 0 of a page is its header:
//
//	0  number of pages (2 bytes, first page only)
//	2  1234 (2)
//	4  number of free slots when the page was made (1)
//	5  slots in use, a bit for each, the lowest of a byte first (8)
//
// In the first page, 12 more slots have the number of free slots of each of the first 128
// pages (1 byte each; 64 for pages that do not exist), and the heads of 128 hash chains (2
// bytes each). All numbers are big-endian.
//
// An entry takes one slot, and further ones if its name needs them:
//
//	 0  1 if the slot is an entry (1)
//	 2  slot of the next entry in the hash chain, or 0 (2)
//	 4  vnode (4)
//	 8  uniquifier (4)
//	12  name, ending with a zero byte
package dir
