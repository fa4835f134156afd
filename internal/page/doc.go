// Package page makes pages of HTML that are one file each: a browser opens them from a disk, without a
// network, in light and dark, on a screen and on a phone. A [Document] has the parts that pages share: head,
// style, script, and a policy that lets nothing else run or load, so that what a peer has sent can do nothing even
// if it came past the escapes of html/template.
//
// [Parts] holds what a page need not show at once, compressed. The browser decompresses a part when the page's
// script asks for it: await part("name") gives the JSON value. What is compressed costs a page a twentieth, and a browser
// nothing until it is shown.
package page
