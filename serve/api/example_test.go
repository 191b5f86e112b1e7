package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

func Example() {
	name, greeting := dag.NewType[string]("name"), dag.NewType[string]("greeting")
	greet := stone.Func("greet", name, greeting, func(_ context.Context, n string) (string, error) { return "Hello, " + n, nil })
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	s, err := serve.New(serve.Config{Journal: db, Pipelines: []serve.Pipeline{{Ashlar: greet}}})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()

	ctx := context.Background()
	c := api.Client{URL: server.URL}
	if _, err := c.Start(ctx, "g-1", api.Start{Pipeline: "greet", Input: json.RawMessage(`"Ada"`)}); err != nil {
		log.Fatal(err)
	}
	run, err := c.Result(ctx, "g-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.State, string(run.Result.Content))
	// Output: done "Hello, Ada"
}
