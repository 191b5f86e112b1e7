package tui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/event"
)

func token(n int) event.Delta { return event.Delta{Text: fmt.Sprintf("w%d ", n)} }

// TestFewFrames checks that a thousand tokens a second are drawn at most thirty
// times, that a run without tokens is drawn for its clock, and that nothing is drawn
// without a run.
func TestFewFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		var mu sync.Mutex
		drawn, tokens := 0, 0
		stop := f.pump(t.Context(), func(tea.Msg) {
			mu.Lock()
			defer mu.Unlock()
			drawn++
			for _, item := range f.take() {
				tokens += strings.Count(string(item.(*piece).text), " ")
			}
		})
		defer stop()
		second := func() int {
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			n := drawn
			drawn = 0
			return n
		}
		if n := second(); n != 0 {
			t.Errorf("%d frames without a run", n)
		}
		f.running.Store(true)
		if n := second(); n < 9 || n > 11 {
			t.Errorf("%d frames for the clock, want 10", n)
		}
		go func() {
			for i := range 1000 {
				time.Sleep(time.Millisecond)
				f.delta("a", token(i))
			}
		}()
		if n := second(); n < 25 || n > 31 {
			t.Errorf("%d frames for a thousand tokens", n)
		}
		second()
		if tokens != 1000 {
			t.Errorf("%d tokens arrived", tokens)
		}
	})
}

// TestFeedIsBounded checks that a stalled display costs no more than a megabyte, that
// it counts the missing items, and that questions are never dropped.
func TestFeedIsBounded(t *testing.T) {
	f := &feed{}
	long := strings.Repeat("x", 1000)
	for i := range 5000 {
		d := token(i)
		d.Text = long
		f.delta(fmt.Sprint(i%2), d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Ask(ctx, ask.Question{Name: "q"}); err != ctx.Err() {
		t.Errorf("got %v", err)
	}
	size, questions, lost := 0, 0, 0
	for _, item := range f.take() {
		switch item := item.(type) {
		case *piece:
			size += len(item.text)
		case *question, withdrawn:
			questions++
		case missed:
			lost = item.items
		}
	}
	if size > maxWaiting || size < maxWaiting/2 || questions != 2 || lost != 5000-size/1000 {
		t.Errorf("%d bytes, %d questions, %d events lost", size, questions, lost)
	}
	if !f.empty() {
		t.Error("it is not empty")
	}
}

func TestFeedJoins(t *testing.T) {
	f := &feed{}
	for i := range 10000 {
		f.delta("a", token(i))
	}
	d := token(1)
	d.Kind = event.Thinking
	f.delta("a", d)
	if n := len(f.take()); n != 2 {
		t.Errorf("%d items, want one of each kind", n)
	}
}

// TestManyTokens checks that the transcript of a long run is bounded.
func TestManyTokens(t *testing.T) {
	m := still(t, 100, 30)
	for i := range 40 {
		for j := range 5000 {
			m.feed.delta(fmt.Sprintf("p/lane[%d]/a", i), token(j))
		}
		m.Update(frame{})
	}
	for i := range 10000 {
		m.take(failed{"k", "p", fmt.Sprint(i), 0})
	}
	tr := &m.transcript
	size := 0
	for _, b := range tr.blocks {
		size += len(b.text)
	}
	if size != tr.size || size > maxText || len(tr.blocks) > maxBlocks {
		t.Errorf("%d bytes (counted as %d) in %d blocks", size, tr.size, len(tr.blocks))
	}
	press(m, "home")
	if s := m.shown(); !strings.Contains(s, "oldest lines are no longer kept") {
		t.Errorf("nothing says that lines are gone:\n%s", s)
	}
}

func BenchmarkFrame(b *testing.B) {
	m := still(b, 120, 40)
	for i := range 30 {
		for j := range 5000 {
			m.feed.delta(fmt.Sprintf("p/lane[%d]/a", i), token(j))
		}
		m.Update(frame{})
	}
	n := 0
	for b.Loop() {
		for range 33 {
			m.feed.delta("p/lane[30]/a", token(n))
			n++
		}
		m.Update(frame{})
		_ = m.View()
	}
}
