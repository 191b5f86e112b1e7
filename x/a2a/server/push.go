package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// tokenHeader is the header in which the token of a configuration is sent.
const tokenHeader = "A2A-Notification-Token"

// receiver returns the receiver that a push configuration describes. If the configuration has no id, the id is derived from its
// URL.
func receiver(p *sdk.PushConfig) serve.Receiver {
	r := serve.Receiver{ID: p.ID, URL: p.URL, Header: map[string]string{}, Secret: p.Token}
	if r.ID == "" {
		sum := sha256.Sum256([]byte(p.URL))
		r.ID = "push-" + hex.EncodeToString(sum[:8])
	}
	if p.Token != "" {
		r.Header[tokenHeader] = p.Token
	}
	if p.Auth != nil && p.Auth.Credentials != "" {
		r.Header["Authorization"] = p.Auth.Scheme + " " + p.Auth.Credentials
	}
	return r
}

// config returns the push configuration that describes a receiver, without the secrets.
func config(run string, r serve.Receiver) *sdk.PushConfig {
	out := &sdk.PushConfig{TaskID: sdk.TaskID(run), ID: r.ID, URL: r.URL}
	if scheme, _, ok := strings.Cut(r.Header["Authorization"], " "); ok {
		out.Auth = &sdk.PushAuthInfo{Scheme: scheme}
	}
	return out
}

// notice returns the notification about a run that has stopped.
func (a *agent) notice(ctx context.Context, who serve.Principal, run api.Run) ([]byte, error) {
	c := a.as(who)
	run, err := c.Result(ctx, run.ID, 0)
	if err != nil {
		return nil, err
	}
	t, err := task(ctx, c, run, new(int))
	if err != nil {
		return nil, err
	}
	return json.Marshal(sdk.StreamResponse{Event: t})
}

// CreateTaskPushConfig implements a2asrv.RequestHandler.
func (a *agent) CreateTaskPushConfig(ctx context.Context, req *sdk.PushConfig) (*sdk.PushConfig, error) {
	if _, err := a.known(ctx, req.TaskID); err != nil {
		return nil, err
	}
	r := receiver(req)
	if err := a.push.Save(ctx, callerOf(ctx).who, string(req.TaskID), r); err != nil {
		return nil, failure(err)
	}
	return config(string(req.TaskID), r), nil
}

// ListTaskPushConfigs implements a2asrv.RequestHandler.
func (a *agent) ListTaskPushConfigs(ctx context.Context, req *sdk.ListTaskPushConfigRequest) (*sdk.ListTaskPushConfigResponse, error) {
	if _, err := a.known(ctx, req.TaskID); err != nil {
		return nil, err
	}
	all, err := a.push.List(ctx, callerOf(ctx).who, string(req.TaskID))
	out := &sdk.ListTaskPushConfigResponse{Configs: []*sdk.PushConfig{}} // no paging: a run has few receivers
	for _, r := range all {
		out.Configs = append(out.Configs, config(string(req.TaskID), r))
	}
	return out, failure(err)
}

// GetTaskPushConfig implements a2asrv.RequestHandler.
func (a *agent) GetTaskPushConfig(ctx context.Context, req *sdk.GetTaskPushConfigRequest) (*sdk.PushConfig, error) {
	all, err := a.ListTaskPushConfigs(ctx, &sdk.ListTaskPushConfigRequest{TaskID: req.TaskID})
	if err != nil {
		return nil, err
	}
	for _, one := range all.Configs {
		if one.ID == req.ID {
			return one, nil
		}
	}
	return nil, sdk.ErrTaskNotFound
}

// DeleteTaskPushConfig implements a2asrv.RequestHandler.
func (a *agent) DeleteTaskPushConfig(ctx context.Context, req *sdk.DeleteTaskPushConfigRequest) error {
	if _, err := a.known(ctx, req.TaskID); err != nil {
		return err
	}
	return failure(a.push.Remove(ctx, callerOf(ctx).who, string(req.TaskID), req.ID))
}
