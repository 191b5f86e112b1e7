// Command web serves a page on which a person can chat with an agent over the AI SDK, using one process and one SQLite file. A
// turn survives a reload of the page and a restart of the process. A scripted model replaces a real one, so the example needs no
// key.
//
//	npm ci --prefix testdata/peers
//	go run ./examples/web
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"iter"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/ui"
)

//go:embed index.html
var page []byte

var (
	message = dag.NewType[string]("message")
	answer  = dag.NewType[agent.Text]("answer")
)

// mason is an agent that answers messages, remembers the conversation, and orders stone if a person approves.
func mason(model llm.Model) stone.Ashlar {
	type order struct {
		Stone string `json:"stone"`
		Tons  int    `json:"tons"`
	}
	deliver := tool.Func("order", "Orders stone.", func(_ context.Context, o order) (string, error) {
		log.Printf("ordered %d t of %s", o.Tons, o.Stone)
		return "It arrives on Monday.", nil
	}, tool.Effects("net"))
	return agent.New("mason", answer, model, agent.Config{
		System: agent.Say("You are a mason."), Conversation: agent.ConversationOf(answer), User: message,
		Use: []agent.Middleware{tool.Confirm(deliver, tool.Ask)},
	}).Describe("Answers questions about stone, and orders it.")
}

// scripted is a scripted model that writes slowly.
type scripted struct{ pause time.Duration }

func (m scripted) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	log.Printf("asked with %d messages", len(req.Messages))
	last := req.Messages[len(req.Messages)-1]
	reply := script.Text("You said: " + last.Text())
	switch {
	case last.Role == llm.RoleTool:
		reply = script.Text("Done. " + last.Text())
	case strings.Contains(last.Text(), "order"):
		reply = script.Calls(llm.ToolCall{ID: "call_1", Name: "order", Input: json.RawMessage(`{"stone":"slate","tons":2}`)})
	case strings.Contains(last.Text(), "count"):
		reply = script.Text("One two three four five six seven eight nine ten eleven twelve.")
	}
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range script.New(reply).Stream(ctx, req) {
			for _, word := range strings.SplitAfter(d.Text, " ") {
				if piece := d; d.Kind == llm.Text {
					select {
					case <-time.After(m.pause):
					case <-ctx.Done():
						yield(llm.Delta{}, ctx.Err())
						return
					}
					if piece.Text = word; !yield(piece, err) {
						return
					}
				}
			}
			if d.Kind != llm.Text && !yield(d, err) {
				return
			}
		}
	}
}

func run() (err error) {
	address := flag.String("address", "127.0.0.1:8080", "listen on `HOST:PORT`")
	file := flag.String("db", "web.db", "keep conversations in `FILE`")
	modules := flag.String("modules", "testdata/peers/node_modules", "the `FOLDER` with the npm packages")
	pause := flag.Duration("pause", 100*time.Millisecond, "wait so long before each word")
	flag.Parse()
	if _, err := os.Stat(filepath.Join(*modules, "ai7")); err != nil {
		log.Printf("%s has no package ai7, so the page cannot chat: run `npm ci --prefix testdata/peers` in the folder of the repository, or set --modules", *modules)
	}
	db, err := sqlite.Open(*file, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := serve.New(serve.Config{Journal: db, Pipelines: []serve.Pipeline{{Ashlar: mason(scripted{*pause})}}, Protocols: []serve.Protocol{ui.Part}})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("GET /web", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	files := http.StripPrefix("/modules", http.FileServer(http.Dir(*modules)))
	mux.HandleFunc("GET /modules/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // without this, a browser caches files longer the older they are
		files.ServeHTTP(w, r)
	})
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	log.Printf("listening on http://%s/web", listener.Addr())
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener); cancel() }()
	s.Run(stop)
	err = server.Shutdown(context.Background())
	if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
