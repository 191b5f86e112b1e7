package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/acp"
)

// A conversation continues, and another process loads it.
func TestConversation(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("chat")
	said, reason := e.prompt(id, "Hello")
	want(t, said, "I have read 1 message(s).")
	want(t, reason, "end_turn")
	said, _ = e.prompt(id, "And now?")
	want(t, said, "I have read 3 message(s).")
	e.stop()

	e = start(t, db)
	list, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || *list.Sessions[0].Title != "Hello" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("x")}}); err == nil {
		t.Error("a prompt of a session that was not loaded")
	}
	if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "none", Cwd: "/tmp", McpServers: []sdk.McpServer{}}); err == nil {
		t.Error("a session that there is not was loaded")
	}
	loaded, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/tmp", McpServers: []sdk.McpServer{}})
	if err != nil || loaded.Modes.CurrentModeId != "chat" || len(loaded.Modes.AvailableModes) != 5 {
		t.Errorf("%+v, %v", loaded, err)
	}
	want(t, e.said, "<Hello>I have read 1 message(s).<And now?>I have read 3 message(s).")
	said, _ = e.prompt(id, "Still there?")
	want(t, said, "I have read 5 message(s).")
}

// A prompt has a picture and a file; an agent that takes none says so.
func TestMedia(t *testing.T) {
	e := start(t, open(t, filepath.Join(t.TempDir(), "stone.db")))
	about, err := e.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err != nil || !about.AgentCapabilities.PromptCapabilities.Image || !about.AgentCapabilities.PromptCapabilities.Audio {
		t.Errorf("%+v, %v", about.AgentCapabilities, err)
	}
	blob := sdk.ResourceBlock(sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{Uri: "file:///tmp/a.pdf", Blob: "JVBERi0=", MimeType: sdk.Ptr("application/pdf")}})
	prompt := []sdk.ContentBlock{sdk.TextBlock("What?"), sdk.ImageBlock("iVBORw0KGgo=", "image/png"), blob}
	if _, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: e.session("eye"), Prompt: prompt}); err != nil {
		t.Error(err)
	}
	want(t, e.said, "[image/png, 8 bytes a.pdf, application/pdf, 5 bytes]")
	if _, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: e.session("chat"), Prompt: prompt}); err == nil || !strings.Contains(err.Error(), "the pipeline chat: it takes no pictures, sounds or other files: want text") {
		t.Error(err)
	}
}

// Two processes that prompt one session at the same time take turns: each turn has those before it, and none is lost, even
// if they say the same.
func TestTwoEditors(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	const rounds = 4
	first := start(t, db)
	id := first.session("chat")
	first.prompt(id, "Hello")
	editors := []*editor{first, start(t, db), start(t, db)}
	var all sync.WaitGroup
	for _, e := range editors[1:] {
		if _, err := e.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range editors {
		all.Go(func() {
			for range rounds {
				if _, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("More")}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	said, _ := first.prompt(id, "All?")
	want(t, said, fmt.Sprintf("I have read %d message(s).", 2*(1+rounds*len(editors))+1))
}

// An editor that closes a session leaves the question that another one has asked.
func TestCloseTwo(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	a, b := start(t, db), start(t, db)
	id := a.session("pick")
	said, _ := a.prompt(id, "stone")
	want(t, said, "Which stone?")
	if _, err := b.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	said, _ = a.prompt(id, "slate")
	want(t, said, "picked slate")
}

// What one editor answers, the other one asks no more. Its prompt is the next turn.
func TestAskedTwice(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	a, b := start(t, db), start(t, db)
	a.answer, b.answer = "never", "yes" // "never" is no choice: the user of a leaves it open
	id := a.session("page")
	ended := make(chan string, 1)
	go func() {
		said, _ := a.prompt(id, "slate")
		ended <- said
	}()
	for !strings.HasPrefix(statesOf(t, db), "waiting") {
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := b.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	said, _ := b.prompt(id, "chalk")
	want(t, said, "yes: About slate\n\nyes: About chalk")
	want(t, <-ended, "yes: About slate")
	want(t, len(b.asked), "2")
}

// The runs of tenants that share the database are in no session, whatever their labels say.
func TestTenants(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("chat")
	e.prompt(id, "Hello")
	e.prompt(id, "And now?")
	s, err := serve.New(serve.Config{Journal: db, Pipelines: pipelines(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	acme := inside.As(s, serve.Principal{Tenant: "acme"})
	for pipeline, input := range map[string]string{"chat": `"Of acme"`, "page": `"Of acme"`, "pick": `"Of acme"`} {
		for _, session := range []string{string(id), "s-acme"} {
			run := session + pipeline
			labels := map[string]string{"acp-session": session, "acp-cwd": "/tmp", "acp-prompt": "Of acme"}
			if _, err := acme.Put(t.Context(), run, api.Start{Pipeline: pipeline, Input: json.RawMessage(input), Labels: labels}); err != nil {
				t.Fatal(err)
			}
			if r, err := acme.Result(t.Context(), run, time.Minute); err != nil || !r.Over() && r.State != journal.Waiting {
				t.Fatal(r, err)
			}
		}
	}
	said, _ := e.prompt(id, "Still there?")
	want(t, said, "I have read 5 message(s).")
	list, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	if err != nil || len(list.Sessions) != 1 || *list.Sessions[0].Title != "Hello" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "s-acme", Cwd: "/tmp", McpServers: []sdk.McpServer{}}); err == nil {
		t.Error("a session of a tenant was loaded")
	}
}

// A word decides what a choice does.
func TestChoices(t *testing.T) {
	for choice, wants := range map[string]string{
		"no": "reject_once", "No, thanks": "reject_once", "no: too dear": "reject_once", "north": "allow_once", "notify me": "allow_once",
		"never": "reject_always", "Never again": "reject_always", "nevertheless": "allow_once",
		"always": "allow_always", "Always, here": "allow_always", "alwaysland": "allow_once", "yes": "allow_once", "": "allow_once",
	} {
		options, _ := acp.Choices(api.Question{Choices: []string{choice}})
		if len(options) != 1 || string(options[0].Kind) != wants {
			t.Errorf("%q: %v, want %s", choice, options, wants)
		}
	}
}

// Questions with choices ask for permission, and steps are shown.
func TestPermission(t *testing.T) {
	for answer, wants := range map[string][2]string{"yes": {"yes: About slate", "end_turn"}, "no": {"no: About slate", "end_turn"}, "": {"", "cancelled"}} {
		e := start(t, memdb.New(t))
		e.answer = answer
		id := e.session("page")
		said, reason := e.prompt(id, "slate")
		want(t, said, wants[0])
		want(t, reason, wants[1])
		want(t, e.asked, "[Publish About slate?[yes allow_once no reject_once]]")
		if answer == "yes" {
			want(t, e.steps, "[page/write done page/approve done page/publish done]")
		}
		e.stop()
	}
}

// Reasoning, text, the arguments of a call and its result are told as they come.
func TestTools(t *testing.T) {
	e := start(t, memdb.New(t))
	e.answer = "always"
	id := e.session("mason")
	go func() {
		for {
			e.mu.Lock()
			n := len(e.steps)
			e.mu.Unlock()
			if n == 2 {
				close(e.gate)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	said, _ := e.prompt(id, "look")
	want(t, said, "I look.\n\nSo slate is grey.")
	want(t, e.thought, "Let me think.")
	want(t, strings.Join(e.steps, "\n"), `look
map[text:{"stone":"sl]|
map[stone:slate]|look: slate
done: map[text:slate is grey]`)

	said, _ = e.prompt(id, "buy")
	want(t, said, "I buy.\n\nSo bought slate.")
	want(t, e.steps[0]+"|"+e.steps[len(e.steps)-1], "buy|done: map[text:bought slate]")
	if len(e.asked) != 1 || !strings.HasSuffix(e.asked[0], "[yes allow_once no reject_once always allow_always never reject_always]") {
		t.Errorf("asked %q", e.asked)
	}
	e.steps = nil
	if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/tmp", McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	want(t, strings.Join(e.steps, "\n"), "look: slate\ndone: map[text:slate is grey]\nbuy: slate\ndone: map[text:bought slate]")
	e.answer = "no"
	e.prompt(e.session("mason"), "buy") // what was allowed always holds in the other session
	want(t, strings.Contains(e.steps[len(e.steps)-1], "failed: "), "true")
}

// An answer that a model has restarted is told once.
func TestBegunAnew(t *testing.T) {
	e := start(t, memdb.New(t))
	id := e.session("mason")
	go func() {
		for said := ""; said != "Oh "; time.Sleep(5 * time.Millisecond) {
			e.mu.Lock()
			said = e.said
			e.mu.Unlock()
		}
		close(e.gate)
	}()
	said, _ := e.prompt(id, "again")
	want(t, said, "Oh \n\nSo again.")
}

// A turn that is cancelled in the middle of an answer leaves the session as it was before it.
func TestSecondAfterCancel(t *testing.T) {
	e := start(t, memdb.New(t))
	id := e.session("mason")
	e.prompt(id, "first")
	go func() {
		for {
			e.mu.Lock()
			said := e.said
			e.mu.Unlock()
			if strings.HasPrefix(said, "So ") && !strings.HasPrefix(said, "So first") {
				_ = e.Cancel(context.Background(), sdk.CancelNotification{SessionId: id})
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	said, reason := e.prompt(id, "wait")
	want(t, said+string(reason), "So cancelled")
	said, reason = e.prompt(id, "second")
	want(t, said+string(reason), "So second.end_turn")
}

// A question without choices is answered by the next prompt, also in another process.
func TestQuestion(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("pick")
	said, _ := e.prompt(id, "stone")
	want(t, said, "Which stone?")
	e.stop()
	e = start(t, db)
	if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/tmp", McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	want(t, e.said, "<stone>Which stone?")
	said, _ = e.prompt(id, "slate")
	want(t, said, "picked slate")
}

// statesOf are the states of the runs.
func statesOf(t *testing.T, db journal.Journal) string {
	t.Helper()
	runs, err := db.Runs(t.Context(), journal.Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, r := range runs {
		states = append(states, string(r.State))
	}
	return strings.Join(states, " ")
}

// Cancelling a turn cancels its run. An editor that goes leaves it, and the next one waits for it.
func TestCancel(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("page")
	running := func() {
		for !strings.HasPrefix(statesOf(t, db), "running") {
			time.Sleep(5 * time.Millisecond)
		}
	}
	go func() {
		running()
		if err := e.Cancel(context.Background(), sdk.CancelNotification{SessionId: id}); err != nil {
			t.Error(err)
		}
	}()
	_, reason := e.prompt(id, "wait")
	want(t, reason, "cancelled")
	want(t, statesOf(t, db), "canceled")

	gone := make(chan error, 1)
	go func() {
		_, err := e.Prompt(context.Background(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("wait")}})
		gone <- err
	}()
	running()
	if err := e.leave(); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err == nil {
		t.Error("a turn whose connection ended has no error")
	}
	e.stop()
	want(t, statesOf(t, db), "drained canceled")
	e = start(t, db)
	e.answer = "yes"
	if _, err := e.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	close(e.gate)
	said, _ := e.prompt(id, "slate") // the turn before asks first
	t.Log(said)
	if text, err := json.Marshal(e.asked); err != nil || len(e.asked) != 2 {
		t.Errorf("%s, %v", text, err)
	}
	want(t, statesOf(t, db), "done done canceled")
}
