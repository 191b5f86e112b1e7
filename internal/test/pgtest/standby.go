package pgtest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Standby starts a standby of this server for the rest of a test, with the application name "standby".
func (s *Server) Standby(t testing.TB, settings ...string) *Server {
	t.Helper()
	standby, err := launch(settings, func(copied *Server) error {
		primary := fmt.Sprintf("host=%s user=%s application_name=standby", s.home, owner)
		return copied.run("pg_basebackup", "-D", copied.data(), "-d", primary, "-R", "-c", "fast", "-X", "stream", "-N")
	})
	check(t, err)
	t.Cleanup(func() { standby.janitor.Close() })
	return standby
}

// Promote promotes a standby to be the primary server, and returns when it accepts writes.
func (s *Server) Promote() error { return s.run("pg_ctl", "-D", s.data(), "-w", "promote") }

// On returns an address with several servers for a database that all of them contain. Clients connect to the server that accepts
// writes.
func On(t testing.TB, address string, servers ...*Server) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	homes := make([]string, len(servers))
	for i, s := range servers {
		homes[i] = s.home
	}
	u.RawQuery = url.Values{"host": {strings.Join(homes, ",")}, "target_session_attrs": {"read-write"}}.Encode()
	return u.String()
}

// Secure restarts the server. It then listens on a port of 127.0.0.1 that requires TLS, with the given
// certificate.
func (s *Server) Secure(t testing.TB, certificate, key []byte) (port int) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.run("pg_ctl", "-D", s.data(), "-m", "fast", "-w", "stop"); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"server.crt": certificate, "server.key": key, "pg_hba.conf": []byte("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")}
	for name, data := range files {
		name = filepath.Join(s.data(), name)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if who := unprivileged(); who != nil {
			if err := os.Chown(name, int(who.Uid), int(who.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.options = append(s.options, "-c", "ssl=on", "-c", "listen_addresses=127.0.0.1", "-c", fmt.Sprint("port=", port))
	s.address += fmt.Sprint("&port=", port)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	return port
}
