package plural

import "testing"

func TestCount(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{Count(0, "byte"), "0 bytes"},
		{Count(1, "byte"), "1 byte"},
		{Count(uint32(2), "byte"), "2 bytes"},
		{Count(int64(-1), "byte"), "-1 bytes"},
		{Count(1, "reply"), "1 reply"},
		{Count(2, "reply"), "2 replies"},
		{Count(2, "key"), "2 keys"},
		{Count(3, "QP alias"), "3 QP aliases"},
		{Count(2, "y"), "2 ys"},
		{Noun(""), "s"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
