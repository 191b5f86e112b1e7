package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/journal"
)

// Requests of attackers are refused, and whatever they say changes nothing.
func TestHostileRequests(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"<script>alert(1)</script>"},"labels":{"<b>":"\"><script>"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	count := 0
	try := func(name, raw string, statuses ...int) {
		t.Helper()
		count++
		status, text := rawRequest(t, h, raw)
		for _, want := range statuses {
			if status == want {
				return
			}
		}
		t.Errorf("%s: %d %.300s, want %v", name, status, text, statuses)
	}
	request := func(line, host string, headers ...string) string {
		return line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	}
	body := func(line, text string, headers ...string) string {
		return request(line, "localhost", append(headers, fmt.Sprintf("Content-Length: %d", len(text)))...) + text
	}
	start := `{"pipeline":"draft","input":{"text":"x"}}`

	// Names under which a page of another origin may reach the server.
	for _, host := range []string{
		"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "evil.example:80", "localhost@evil.example",
		"xn--lcalhost-3ya", "localhost,evil.example", "0x7f000001", "2130706433", "127.1", "localhost.", "[::1].evil.example",
	} {
		try("host "+host, request("GET /v1/runs", host), 421, 400)
	}
	try("two hosts", "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400)
	try("no host", "GET /v1/runs HTTP/1.1\r\n\r\n", 400)
	try("host in the line", request("GET http://evil.example/v1/runs", "localhost"), 421)

	// Pages of other origins.
	for _, header := range []string{
		"Origin: http://evil.example", "Origin: null", "Origin: http://localhost.evil.example", "Origin: http://localhost:1",
		"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: x",
	} {
		try(header, body("PUT /v1/runs/b", start, header), 403)
		try(header, body("POST /v1/runs/a/cancel", "", header), 403)
	}

	// GET changes nothing, and other methods reach nothing.
	for _, line := range []string{
		"GET /v1/runs/a/cancel", "GET /v1/runs/a/resume", "GET /v1/runs/a/answers", "GET /v1/act", "HEAD /v1/runs/a/cancel",
		"TRACE /v1/runs", "CONNECT /v1/runs", "PATCH /v1/runs/a", "BREW /v1/runs/a", "OPTIONS /v1/runs/a", "DELETE /v1/runs",
	} {
		try(line, request(line, "localhost"), 404, 405, 400)
	}
	try("a method in a header", body("GET /v1/runs/a/cancel", "", "X-HTTP-Method-Override: POST"), 405)

	// Paths that leave where they are.
	for _, path := range []string{
		"/v1/runs/../../etc/passwd", "/v1/runs/..%2f..%2fetc%2fpasswd", "/v1/runs/%2e%2e/%2e%2e", "/assets/..%2fpage.go", "/assets/../../x",
		"/v1/runs/a%00", "/v1/runs/a/nodes/..%2f..%2fx", "/v1/runs/%ff", "//evil.example/v1/runs", "/v1/runs/a/nodes/zz", "/v1/runs/" + strings.Repeat("a", 5000),
		"/v1/runs/a%0d%0aX-Evil:1", "/v1/runs/*", "/v1/runs/a'%20OR%20'1'='1",
	} {
		try(path, request("GET "+path, "localhost"), 404, 400, 307, 301)
	}
	for _, id := range []string{"..", ".a", "a%2fb", "a%00", "%3Cscript%3E", "a%20b", "-a", strings.Repeat("a", 101), "%E2%80%AEa"} {
		try("id "+id, body("PUT /v1/runs/"+id, start), 422, 404, 400, 307, 301)
	}

	// Bodies.
	for name, text := range map[string]string{
		"deep":          strings.Repeat("[", 100_000),
		"deep input":    `{"pipeline":"draft","input":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
		"huge":          `{"pipeline":"` + strings.Repeat("x", 9<<20) + `"}`,
		"two keys":      `{"pipeline":"draft","pipeline":"slow","input":{"text":"x"}}`,
		"another case":  `{"PIPELINE":"draft","input":{"text":"x"}}`,
		"unknown field": `{"pipeline":"draft","input":{"text":"x"},"grants":["process"]}`,
		"no text":       "\xff\xfe",
		"two values":    start + start,
		"a number":      `1e999999`,
		"a prototype":   `{"__proto__":{"pipeline":"draft"}}`,
	} {
		try(name, body("PUT /v1/runs/b", text), 400, 413, 422)
	}
	try("a form", body("PUT /v1/runs/b", "pipeline=draft", "Content-Type: application/x-www-form-urlencoded"), 415)
	try("plain text", body("PUT /v1/runs/b", start, "Content-Type: text/plain"), 415)
	for _, kind := range []string{"application/jsonx", "application/json-seq", "application/jsonp; charset=utf-8", "text/json", "application/json, text/plain", ";", "multipart/form-data"} {
		for _, path := range []string{"PUT /v1/runs/b", "POST /v1/responses", "POST /v1/chat/completions"} {
			try(path+" of type "+kind, body(path, start, "Content-Type: "+kind), 415)
		}
	}
	try("json of a charset", body("POST /v1/responses", `{}`, "Content-Type: application/json; charset=utf-8"), 400)

	// Queries that cannot be read, and values that do not exist.
	for _, query := range []string{"?pipeline=';x", "?a=%zz", "?label.x=%", "?x;y"} {
		for _, path := range []string{"/v1/runs", "/v1/runs/a", "/runs/a", "/", "/v1/questions"} {
			try(path+query, request("GET "+path+query, "localhost"), 400)
		}
	}
	for _, path := range []string{"/runs/a?only=x", "/runs/a?from=x&only=Done"} {
		try(path, request("GET "+path, "localhost"), 404)
	}
	for _, path := range []string{"/runs/a?at=x&only=%00", "/runs/a%ff"} {
		try(path, request("GET "+path, "localhost"), 400)
	}
	// Both lengths: what follows the body is not a second request.
	if got := replies(t, h, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nDELETE /v1/runs/a HTTP/1.1\r\nHost: localhost\r\n\r\n"); got != 1 {
		t.Errorf("a request with two lengths has %d replies", got)
	}
	try("two lengths", request("PUT /v1/runs/b", "localhost", "Content-Length: 5", "Content-Length: 6")+"{}", 400)
	try("length and chunks", request("PUT /v1/runs/b", "localhost", "Content-Length: 5", "Transfer-Encoding: x")+"{}", 400, 501)

	// Positions of streams.
	for _, at := range []string{"-1", "x", "9999999999999999999999", "1e3", "0x1", strings.Repeat("1", 100)} {
		try("after "+at, request("GET /v1/runs/a/events", "localhost", "Last-Event-ID: "+at), 400)
	}
	try("a flood of headers", request("GET /v1/runs", "localhost", strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 2000)+"X-B: 1"), 431)

	if count < 60 {
		t.Errorf("%d requests", count)
	}
	runs, err := h.journal.Runs(t.Context(), journal.Query{})
	if err != nil || len(runs) != 1 || runs[0].State != journal.Waiting {
		t.Errorf("the journal has %+v, %v", runs, err)
	}
	// Script in contents is data.
	resp, err := http.Get(h.URL + "/v1/runs/a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || strings.Contains(string(text), "<script>") || resp.Header.Get("Content-Type") != "application/json" ||
		resp.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%v %v %s", err, resp.Header, text)
	}
}

// replies sends bytes and returns the number of replies until the server closes the connection.
func replies(t *testing.T, h *house, raw string) int {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(conn)
	return strings.Count(string(text), "HTTP/1.1 ")
}

// rawRequest sends bytes and returns the status and the body of the reply.
func rawRequest(t *testing.T, h *house, raw string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, raw) }() // which the server may end
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(text)
}
