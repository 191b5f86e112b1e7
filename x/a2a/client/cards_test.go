package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/x/a2a/client"
)

// stateless is an agent of version 0.3 that answers with the ended task and keeps none.
func stateless(t *testing.T, card, result string) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	url := "http://" + s.Listener.Addr().String()
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method == http.MethodGet {
			io.WriteString(w, strings.ReplaceAll(card, "URL", url))
		} else if json.NewDecoder(r.Body).Decode(&m); m.Method == "message/send" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, result)
		} else {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found","data":["x"]}}`, m.ID)
		}
	})
	s.Start()
	t.Cleanup(s.Close)
	return s
}

const ended = `"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"sunny"}]}]}`

// TestCards reaches agents whose cards leave out what older versions do not demand. Their answer comes with the reply.
func TestCards(t *testing.T) {
	for name, card := range map[string]string{
		"0.3":                       `"protocolVersion":"0.3.0","url":"URL/a2a","preferredTransport":"JSONRPC"`,
		"without the transport":     `"protocolVersion":"0.3.0","url":"URL/a2a"`,
		"0.2":                       `"protocolVersion":"0.2.5","url":"URL/a2a"`,
		"without a version":         `"url":"URL/a2a"`,
		"the same address again":    `"protocolVersion":"0.3.0","url":"URL/a2a","additionalInterfaces":[{"url":"URL/a2a","transport":"JSONRPC"}]`,
		"another transport":         `"protocolVersion":"0.3.0","url":"URL/a2a","preferredTransport":"GRPC","additionalInterfaces":[{"url":"URL/a2a","transport":"JSONRPC"}]`,
		"another transport by hand": `"protocolVersion":"0.3.0","url":"URL/a2a","additionalInterfaces":[{"url":"URL/grpc","transport":"GRPC"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			s := stateless(t, `{"name":"w","description":"","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],`+card+`}`, ended)
			agent := client.New(call.Metadata{ID: "agent"}, client.Config{URL: s.URL, Poll: 10 * time.Millisecond})
			reply, err := agent.Invoke(t.Context(), input("Bern"))
			if err != nil || string(reply.Out) != `{"text":"sunny"}` {
				t.Errorf("%v, %v", reply, err)
			}
		})
	}
}

// A blank artifact is no answer beside the words of the agent.
func TestBlankArtifact(t *testing.T) {
	s := stateless(t, `{"name":"w","description":"","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],"url":"URL/a2a"}`,
		`"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed","message":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"sunny"}]}},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":" "}]}]}`)
	agent := client.New(call.Metadata{ID: "agent"}, client.Config{URL: s.URL, Poll: 10 * time.Millisecond})
	if reply, err := agent.Invoke(t.Context(), input("Bern")); err != nil || string(reply.Out) != `{"text":"sunny"}` {
		t.Errorf("%v, %v", reply, err)
	}
}

// TestInHand has tasks end with the reply, of which the agent keeps none, and errors whose data is no object.
func TestInHand(t *testing.T) {
	for name, tt := range map[string]struct{ result, want string }{
		"failed":           {`"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"failed","message":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"no such city"}]}}}`, "the task of the agent is failed: no such city"},
		"rejected":         {`"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"rejected"}}`, "the task of the agent is rejected"},
		"a list of detail": {`"error":{"code":-32602,"message":"Invalid parameters","data":[{"@type":"x","reason":"NO_CITY"}]}`, "Invalid parameters"},
		"a text of detail": {`"error":{"code":-32602,"message":"Invalid parameters","data":"no city"}`, "Invalid parameters"},
		"an object":        {`"error":{"code":-32602,"message":"Invalid parameters","data":{"city":null}}`, "Invalid parameters"},
		"a list of texts":  {`"error":{"code":-32602,"message":"Invalid parameters","data":["no city",null]}`, "Invalid parameters"},
		"a list of null":   {`"error":{"code":-32602,"message":"Invalid parameters","data":[null]}`, "Invalid parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stateless(t, `{"name":"w","description":"","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],"protocolVersion":"0.3.0","url":"URL/a2a"}`, tt.result)
			agent := client.New(call.Metadata{ID: "agent"}, client.Config{URL: s.URL, Poll: 10 * time.Millisecond})
			reply, err := agent.Invoke(t.Context(), input("Bern"))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "decode") {
				t.Errorf("%v, %v, want %s", reply, err, tt.want)
			}
		})
	}
}
