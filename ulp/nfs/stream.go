package nfs

import (
	"errors"
	"io"
)

// block returns how many bytes go at a time from and to streams: so many that Depth calls
// are outstanding, within reason.
func (c *Client) block(size int) int { return size * max(1, min(c.cfg.Depth, (8<<20)/size)) }

// ReadFrom writes what a reader has, in large pieces, each of which is read while the one
// before is on its way.
func (f *File) ReadFrom(r io.Reader) (int64, error) {
	if err := f.usable("write", true); err != nil {
		return 0, err
	}
	size := f.c.block(f.c.wsize)
	full, free := make(chan chunk), make(chan []byte, 2)
	free <- nil
	free <- nil
	stop := make(chan struct{})
	defer func() {
		close(stop)
		for range full { // who reads has ended once it is closed
		}
	}()
	go func() {
		defer close(full)
		var last []byte
		for more := true; more; {
			var p []byte
			select {
			case p = <-free:
			case <-stop:
				return
			}
			if len(p) < size { // the first is small, as most files are
				p = make([]byte, min(size, max(64<<10, 32*len(last))))
			}
			last = p
			n, err := readFull(r, p)
			if isEnd(err) {
				err, more = nil, false
			}
			select {
			case full <- chunk{p, n, err}:
				more = more && err == nil
			case <-stop:
				return
			}
		}
	}()
	var total int64
	for c := range full {
		n, err := f.Write(c.p[:c.n])
		total += int64(n)
		if err = errors.Join(err, c.err); err != nil {
			return total, err
		}
		free <- c.p
	}
	return total, nil
}

// readFull reads until p is full. It returns the reader's own error if it is not, where
// io.ReadFull makes io.ErrUnexpectedEOF of an end: a reader says that of a source that was
// cut off.
func readFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	return n, err
}

// isEnd reports whether an error is the end of a file or stream. One that only wraps io.EOF
// is none: a lost connection is reported like that.
func isEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // see above
}

// A chunk is a part of a stream.
type chunk struct {
	p   []byte
	n   int
	err error
}

// WriteTo writes what is left of the file to a writer, in large pieces, each of which is
// read while the one before is written.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	if err := f.usable("read", false); err != nil {
		return 0, err
	}
	// A file that is smaller than a piece takes no more memory than it has bytes.
	size := int(min(uint64(f.c.block(f.c.rsize)), max(f.size, 64<<10)))
	read := func(p []byte, done chan<- chunk) {
		n, err := f.Read(p)
		done <- chunk{p, n, err}
	}
	done := make(chan chunk, 1)
	spare := make([]byte, size)
	go read(make([]byte, size), done)
	for total := int64(0); ; {
		c := <-done
		if c.err != nil {
			if isEnd(c.err) {
				c.err = nil
			}
			return total, c.err
		}
		go read(spare, done)
		spare = c.p
		n, err := w.Write(c.p[:c.n])
		total += int64(n)
		if err != nil || n < c.n {
			<-done
			if err == nil {
				err = io.ErrShortWrite
			}
			return total, err
		}
	}
}

// readAll returns what is left of the file.
func (f *File) readAll() ([]byte, error) {
	if err := f.usable("read", false); err != nil {
		return nil, err
	}
	n, err := f.node()
	if err != nil {
		return nil, pathError("read", f.name, err)
	}
	// The size is a peer's word: more than that is read, and less is made room for.
	data := make([]byte, 0, min(n.attr.Size, uint64(f.c.block(f.c.rsize)))+512)
	for {
		if len(data) == cap(data) {
			data = append(data, make([]byte, max(512, cap(data)))...)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if isEnd(err) {
			return data, nil
		}
		if err != nil {
			return data, err
		}
	}
}

var (
	_ io.ReaderFrom = (*File)(nil)
	_ io.WriterTo   = (*File)(nil)
)
