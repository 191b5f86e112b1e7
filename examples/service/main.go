// Command service is an HTTP service that embeds Stone. It serves a page of its own and the API of package serve, with one
// pipeline and one SQLite file. When the service starts, it resumes the runs that can continue. On SIGTERM, running steps finish
// and are recorded, and then the service exits.
//
//	go run ./examples/service -db runs.db
//	curl -X PUT --json '{"pipeline": "page", "input": "Marble"}' localhost:8080/v1/runs/marble
//	curl 'localhost:8080/v1/runs/marble/result?wait=10s' # it waits for an answer
//	curl --json '{"question": "page/approve", "response": "yes"}' localhost:8080/v1/runs/marble/answers
//	curl 'localhost:8080/v1/runs/marble/result?wait=10s'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
)

var request, draft, page = dag.NewType[string]("request"), dag.NewType[string]("draft"), dag.NewType[string]("page")
var approval = dag.NewType[stone.Answer]("approval")

// pipeline writes a page and asks a person to approve it. The pause simulates a slow
// model.
func pipeline(pause time.Duration) stone.Ashlar {
	return stone.Seq("page",
		stone.Func("write", request, draft, func(_ context.Context, text string) (string, error) {
			log.Printf("writing %s", text)
			time.Sleep(pause)
			return "A draft: " + text, nil
		}),
		stone.Ask("approve", draft, approval, func(text string) string { return "Publish this? " + text }, stone.Choices("yes", "no")),
		stone.Func2("publish", draft, approval, page, func(_ context.Context, text string, a stone.Answer) (string, error) {
			return a.Response + ": " + text, nil
		}))
}

func run() (err error) {
	address := flag.String("address", "127.0.0.1:8080", "listen on `HOST:PORT`")
	file := flag.String("db", "service.db", "keep runs in `FILE`")
	pause := flag.Duration("pause", time.Second, "write a draft for so long")
	flag.Parse()
	db, err := sqlite.Open(*file, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := serve.New(serve.Config{Journal: db, Pipelines: []serve.Pipeline{{Ashlar: pipeline(*pause)}}})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /about", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Pages on request.") })
	mux.Handle("/", s)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	log.Printf("listening on %s", listener.Addr())
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener); cancel() }()
	s.Run(stop) // resumes runs; on a signal, running steps finish and no new ones start
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
