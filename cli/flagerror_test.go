package cli

import (
	"net"
	"strings"
	"testing"
)

func TestListenOnUsedAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := "--address " + l.Addr().String() + " is in use: choose another"
	if _, err := listen(l.Addr().String()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("listen: %v, want %s", err, want)
	}
}
