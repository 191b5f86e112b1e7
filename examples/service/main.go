// Command service is an HTTP service that embeds Stone: one pipeline, one SQLite
// file, any number of runs. At its start it resumes the runs that can continue. At
// SIGTERM running steps finish and are recorded, and it stops.
//
//	go run ./examples/service -db runs.db
//	curl -d text=Marble localhost:8080/runs                            # prints the id of the run
//	curl localhost:8080/runs/ID                                        # its state and questions
//	curl -d question=approve -d text=yes localhost:8080/runs/ID/answer # the run continues
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
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

type service struct {
	db      *sqlite.DB
	page    stone.Ashlar
	drain   chan struct{}
	running sync.WaitGroup
}

// start runs a new run or resumes one. The channel is closed when the run is in the
// journal, so that it will not be lost, or has ended.
func (s *service) start(id string, input dag.DAG, resume bool) <-chan struct{} {
	kept := make(chan struct{})
	keep := sync.OnceFunc(func() { close(kept) })
	cfg := stone.Config{RunID: id, Input: input,
		Recorder: journal.Keep(s.db, journal.Options{Resume: resume, Drain: s.drain}),
		Watch:    event.Func(slog.LevelInfo, func(event.Event) { keep() })}
	s.running.Go(func() {
		defer keep()
		text, err := stone.Produce(context.Background(), s.page, page, cfg)
		for errors.As(err, new(*journal.HeldError)) { // it is ending, with its question open
			time.Sleep(50 * time.Millisecond)
			text, err = stone.Produce(context.Background(), s.page, page, cfg)
		}
		log.Println(id, text, err)
	})
	return kept
}

// handler creates runs, shows them and takes answers.
func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		id := strings.ToLower(rand.Text()[:10])
		<-s.start(id, dag.Of(request.With(r.FormValue("text"))), false)
		fmt.Fprintln(w, id)
	})
	mux.HandleFunc("GET /runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		info, err := s.db.Find(r.Context(), r.PathValue("id"))
		questions, failed := s.db.Questions(r.Context(), info.ID)
		if err = errors.Join(err, failed); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"state": info.State, "questions": questions}) // or the client has gone
	})
	mux.HandleFunc("POST /runs/{id}/answer", func(w http.ResponseWriter, r *http.Request) {
		if err := journal.Answer(r.Context(), s.db, r.PathValue("id"), r.FormValue("question"), r.FormValue("text")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		<-s.start(r.PathValue("id"), dag.DAG{}, true)
	})
	return mux
}

func serve() (err error) {
	address := flag.String("address", "127.0.0.1:8080", "listen on `HOST:PORT`")
	file := flag.String("db", "service.db", "keep runs in `FILE`")
	pause := flag.Duration("pause", time.Second, "write a draft for so long")
	flag.Parse()
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	db, err := sqlite.Open(*file, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s := &service{db: db, page: pipeline(*pause), drain: make(chan struct{})}
	runs, err := journal.Resumable(stop, db)
	listener, failed := net.Listen("tcp", *address)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	for _, r := range runs {
		s.start(r.ID, dag.DAG{}, true)
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	log.Printf("listening on %s, resumed %d runs", listener.Addr(), len(runs))
	go func() {
		<-stop.Done()
		close(s.drain) // running steps finish, no new ones start
		_ = listener.Close()
	}()
	if err = server.Serve(listener); stop.Err() != nil {
		err = server.Shutdown(context.Background())
	}
	s.running.Wait()
	return err
}

func main() {
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}
