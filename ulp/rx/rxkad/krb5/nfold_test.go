package krb5

import (
	"bytes"
	"encoding/hex"
	"testing"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// The vectors of RFC 3961 §A.1.
func TestKnownFolds(t *testing.T) {
	for _, v := range []struct {
		in     string
		folded string
	}{
		{"012345", "be072631276b1955"},
		{"password", "78a07b6caf85fa"},
		{"Rough Consensus, and Running Code", "bb6ed30870b7f0e0"},
		{"password", "59e4a8ca7c0385c3c37b3f6d2000247cb6e6bd5b3e"},
		{"MASSACHVSETTS INSTITVTE OF TECHNOLOGY", "db3b0d8f0b061e603282b308a50841229ad798fab9540c1b"},
		{"Q", "518a54a215a8452a518a54a215a8452a518a54a215"},
		{"ba", "fb25d531ae8974499f52fd92ea9857c4ba24cf297e"},
		{"kerberos", "6b65726265726f73"},
		{"kerberos", "6b65726265726f737b9b5b2b93132b93"},
		{"kerberos", "8372c236344e5f1550cd0747e15d62ca7a5a3bcea4"},
		{"kerberos", "6b65726265726f737b9b5b2b93132b935c9bdcdad95c9899c4cae4dee6d6cae4"},
	} {
		want := unhex(t, v.folded)
		if got := nfold([]byte(v.in), len(want)); !bytes.Equal(got, want) {
			t.Errorf("%q folded to %d bytes is %x, want %x", v.in, len(want), got, want)
		}
	}
}

func TestNothingIsNotFolded(t *testing.T) {
	if got := nfold(nil, 8); got != nil {
		t.Errorf("%x", got)
	}
	if got := nfold([]byte("x"), 0); got != nil {
		t.Errorf("%x", got)
	}
}
