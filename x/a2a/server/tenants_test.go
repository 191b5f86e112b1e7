package server_test

import (
	"errors"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/stonelayer/stone/serve"
)

func TestTenants(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.access = tokens{"a": {Name: "a", Tenant: "red"}, "o": {Name: "o"}, "b": {Name: "b", Tenant: "blue"}, "r": {Name: "r", Tenant: "red", Roles: []serve.Role{serve.Read}}}
	h.start()
	with := func(token string) *a2aclient.Client {
		card, err := agentcard.NewResolver(nil).Resolve(t.Context(), h.url, agentcard.WithRequestHeader("Authorization", "Bearer "+token))
		if err != nil {
			t.Fatal(err)
		}
		if known := h.access.(tokens)[token].Name != ""; len(card.Skills) > 0 != known {
			t.Errorf("the card for token %q has %d skills", token, len(card.Skills))
		}
		store := a2aclient.NewInMemoryCredentialsStore()
		store.Set("s", "token", a2aclient.AuthCredential(token))
		c, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithCallInterceptors(&a2aclient.AuthInterceptor{Service: store}))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ctx := a2aclient.AttachSessionID(t.Context(), "s")
	req := message("page", "slate")
	res, err := with("a").SendMessage(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	task := res.(*sdk.Task)
	if _, err := with("b").GetTask(ctx, &sdk.GetTaskRequest{ID: task.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := with("b").SendMessage(ctx, answer(task, "yes")); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("an answer of another tenant: %v", err)
	}
	if _, err := with("r").GetTask(ctx, &sdk.GetTaskRequest{ID: task.ID}); err != nil {
		t.Errorf("a reader: %v", err)
	}
	if _, err := with("r").SendMessage(ctx, answer(task, "yes")); err == nil {
		t.Error("a reader has answered")
	}
	if _, err := with("").GetTask(ctx, &sdk.GetTaskRequest{ID: task.ID}); err == nil {
		t.Error("a caller without a token was let in")
	}
	other, err := with("b").SendMessage(ctx, req)
	if err != nil || h.written.Load() != 2 {
		t.Errorf("the same message of another tenant: %v, %v", other, err)
	}
	talked, err := with("a").SendMessage(ctx, message("chat", "Hello"))
	if err != nil {
		t.Fatal(err)
	}
	for token, last := range map[string]string{"o": "completed: I have read 1 message(s).", "a": "completed: I have read 3 message(s)."} { // without a tenant it sees all
		next := message("chat", "And now?")
		next.Message.ContextID = talked.(*sdk.Task).ContextID
		res, err := with(token).SendMessage(ctx, next)
		if err != nil {
			t.Fatal(err)
		}
		want(t, shown(res.(*sdk.Task)), last)
	}
	if card, err := with("r").GetExtendedAgentCard(ctx, &sdk.GetExtendedAgentCardRequest{}); err != nil || len(card.Skills) != 7 || len(card.Capabilities.Extensions) != 1 {
		t.Errorf("%v, %v", card, err)
	}
}
