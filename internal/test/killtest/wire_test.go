//go:build unix

package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/step"
)

// wire is a carrier between the processes of a team. Each listens on a socket in the folder
// of the run. Whoever does work locks a file that is named like it, so that nobody else gets
// it until its process has done it or is dead.
type wire string

// join makes the process a worker of a team, and returns the executor that sends leaves to
// all of them. Leaves of the loop, and those that stand alone, stay with the holder.
func join(term context.Context, folder string, p stone.Ashlar, j journal.Journal) (step.Executor, error) {
	w := wire(folder)
	listener, err := net.Listen("unix", filepath.Join(folder, fmt.Sprint(os.Getpid(), ".sock")))
	if err != nil {
		return nil, err
	}
	worker := &remote.Worker{Journal: j, Pipelines: []stone.Ashlar{p}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the process ends
			}
			go w.receive(term, conn, worker)
		}
	}()
	return remote.New(remote.Config{Journal: j, Carrier: w, Again: 200 * time.Millisecond, Routes: []remote.Route{
		{Leaf: "lane", Pool: "team", Batch: 4}, {Leaf: "write", Pool: "team"},
	}}), nil
}

// Send implements [remote.Carrier].
func (w wire) Send(_ context.Context, _ string, work remote.Work) error {
	sockets, err := filepath.Glob(filepath.Join(string(w), "*.sock"))
	if err != nil {
		return err
	}
	err = errors.New("the team has no live process")
	for _, i := range rand.Perm(len(sockets)) { // those of dead processes are refused
		if err = give(sockets[i], work); err == nil {
			return nil
		}
	}
	return err
}

func give(socket string, work remote.Work) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := errors.Join(conn.SetDeadline(time.Now().Add(10*time.Second)), json.NewEncoder(conn).Encode(work)); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}

// Cancel implements [remote.Carrier].
func (wire) Cancel(context.Context, remote.Work) error { return nil }

func (w wire) receive(ctx context.Context, conn net.Conn, worker *remote.Worker) {
	defer conn.Close()
	var work remote.Work
	if err := json.NewDecoder(conn).Decode(&work); err != nil {
		return // the sender is dead
	}
	lock, err := os.OpenFile(filepath.Join(string(w), work.ID.String()), os.O_CREATE, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer lock.Close()
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_, _ = conn.Write([]byte{1}) // a sender that does not get it sends again
	if err == nil {
		if err := worker.Do(ctx, work); err != nil {
			fmt.Fprintln(os.Stderr, "work is delivered again:", err)
		}
	}
}

// Posted implements [journal.Board].
func (w *witness) Posted(ctx context.Context, run string, keys ...string) (map[string]journal.Item, error) {
	items, err := w.Store.Posted(ctx, run, keys...)
	for name, item := range items {
		if digest, ok := strings.CutPrefix(name, "order/"); ok {
			key, bad := keyOf(item)
			w.orders.Store(digest, key)
			err = errors.Join(err, bad)
		}
	}
	return items, err
}

// Post implements [journal.Board]: results of workers are acknowledged by the board.
func (w *witness) Post(ctx context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	kept, err := w.Store.Post(ctx, run, items...)
	for _, item := range kept {
		var bad error
		if digest, ok := strings.CutPrefix(item.Key, "result/"); ok {
			if key, final := w.orders.Load(digest); final { // others do not count for ever
				bad = w.acknowledged(key.(step.Key))
			}
		} else if strings.HasPrefix(item.Key, "step/") {
			var key step.Key
			if key, bad = keyOf(item); bad == nil {
				bad = w.acknowledged(key)
			}
		}
		err = errors.Join(err, bad)
	}
	return kept, err
}

// keyOf returns the key of the step in an item.
func keyOf(item journal.Item) (step.Key, error) {
	var of struct{ Key step.Key }
	err := json.Unmarshal(item.Data, &of)
	if err == nil && of.Key.Path == "" {
		err = fmt.Errorf("item %s has no path", item.Key)
	}
	return of.Key, err
}
