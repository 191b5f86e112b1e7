package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Hundreds of connections whose bodies never come leave the server answering, to new clients and to
// those whose requests are answered.
func TestManyUnfinishedRequests(t *testing.T) {
	url, _, end := server(t, "--insecure", "--db", filepath.Join(t.TempDir(), "x.db"))
	at := strings.TrimPrefix(url, "http://")
	dial := func(line, header string) net.Conn {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n", line, header); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	stream := dial("GET /v1/runs", "Accept: text/event-stream")
	if resp, err := http.ReadResponse(bufio.NewReader(stream), nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	const hostile, most = 600, 256
	var all []net.Conn
	for i := range hostile {
		line := []string{"POST /login", "POST /v1/runs", "GET /v1/runs", "POST /mcp"}[i%4]
		all = append(all, dial(line, "Content-Length: 100"))
	}
	for range 20 {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(url + "/v1/runs")
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	for i, conn := range all[:hostile-most] { // the server closes the oldest within seconds, without a reply
		if n, _ := io.Copy(io.Discard, conn); n > 0 {
			t.Fatalf("connection %d of %d was kept until its time was over", i, hostile)
		}
	}
	if err := stream.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for buffer := make([]byte, 1<<10); ; {
		if _, err := stream.Read(buffer); err != nil {
			if !strings.Contains(err.Error(), "timeout") {
				t.Errorf("the stream was closed: %v", err)
			}
			break
		}
	}
	end()
}

// A thousand clients of one address, who come at once and are slow to write, are all answered.
func TestManyAtOnce(t *testing.T) {
	url, _, end := server(t, "--insecure", "--db", filepath.Join(t.TempDir(), "x.db"))
	defer end()
	all := make([]net.Conn, 1000)
	for i := range all {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		all[i] = conn
	}
	for i, conn := range all {
		if _, err := io.WriteString(conn, "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	for i, conn := range all {
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("client %d: %v, %v", i, resp, err)
		}
	}
}
