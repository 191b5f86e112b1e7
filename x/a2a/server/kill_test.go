package server_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/journal/sqlite"
)

// exists is closed when a file exists.
func exists(file string) <-chan struct{} {
	c := make(chan struct{})
	if file == "" {
		return c
	}
	go func() {
		for {
			if _, err := os.Stat(file); err == nil {
				close(c)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return c
}

// childVar makes the test binary a server with its journal in a folder. It prints its address and ends with its input.
const childVar = "STONE_TEST_A2A_SERVER"

func TestMain(m *testing.M) {
	dir := os.Getenv(childVar)
	if dir == "" {
		os.Exit(m.Run())
	}
	db, err := sqlite.Open(filepath.Join(dir, "stone.db"), sqlite.Options{})
	if err != nil {
		panic(err)
	}
	h := &house{T: new(testing.T), journal: db, file: filepath.Join(dir, "go")}
	h.start()
	fmt.Println(h.url)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A server that is killed while a task runs, or right after a message, loses no task and makes no second one.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	start := func() (*house, *exec.Cmd) {
		url, cmd := peer.Self(t, childVar+"="+dir)
		return &house{T: t, url: url}, cmd
	}
	req := message("draft", "wait")
	req.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
	var id sdk.TaskID
	for kill := range 4 {
		h, cmd := start()
		c := h.client(protocols[kill%2])
		if kill == 0 { // while the message is on its way: whether it has arrived is not known
			go func() { _, _ = c.SendMessage(t.Context(), req) }()
			time.Sleep(5 * time.Millisecond)
		} else if task := h.send(c, req); id == "" {
			id = task.ID
		} else if task.ID != id {
			t.Errorf("a second task %s beside %s", task.ID, id)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := start()
	c := h.client(sdk.TransportProtocolJSONRPC)
	req.Config = nil
	done := h.send(c, req)
	want(t, shown(done), "completed: About wait")
	list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{})
	if err != nil || len(list.Tasks) != 1 || done.ID != id {
		t.Errorf("%d tasks, %v", len(list.Tasks), err)
	}
}
