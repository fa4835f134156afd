// Package timeline makes of what package rnictimeline has recorded the life of each work request: when it was posted, when
// its first and its last byte left, when data was placed, when it was complete, and when the program polled its completion.
//
// [Load] reads a directory and matches events with messages on the wire by their order: that of a send queue is the order of
// its messages, and that of the messages of a direction is the order of the receives they take. A [Timeline] is written as one
// page of HTML, or as a Chrome trace, which chrome://tracing and Perfetto show.
package timeline
