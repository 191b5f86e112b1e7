package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/stonelayer/stone/serve"
)

// Schemas is the URI of a card extension. Its parameters contain two JSON Schemas for each skill: "input" and, if it is known,
// "output".
const Schemas = "https://github.com/stonelayer/stone/tree/main/x/a2a#schemas"

// card returns the card of the agent. It includes the skills if the caller may see them.
func (a *agent) card(base string, skills bool) *sdk.AgentCard {
	name, about := "stone", fmt.Sprintf("Pipelines: %s. Each is an agent of its own, too: see %s/NAME%s", strings.Join(a.names(), ", "), base+a.at, a2asrv.WellKnownAgentCardPath)
	if len(a.skills) == 1 {
		name, about = a.skills[0].Name, a.skills[0].about()
	}
	if !skills {
		name, about = "stone", "Send a token to see the skills of this agent."
	}
	at := func(over sdk.TransportProtocol, version sdk.ProtocolVersion) *sdk.AgentInterface {
		i := sdk.NewAgentInterface(base+a.at, over)
		i.ProtocolVersion = cmp.Or(version, i.ProtocolVersion)
		return i
	}
	card := &sdk.AgentCard{
		Name: cmp.Or(a.cfg.Name, name), Description: cmp.Or(a.cfg.Description, about), Version: cmp.Or(a.cfg.Version, "1"),
		SupportedInterfaces: []*sdk.AgentInterface{
			at(sdk.TransportProtocolJSONRPC, ""), at(sdk.TransportProtocolHTTPJSON, ""),
			at(sdk.TransportProtocolJSONRPC, a2av0.Version), at(sdk.TransportProtocolHTTPJSON, a2av0.Version),
		},
		Capabilities:         sdk.AgentCapabilities{Streaming: true, PushNotifications: true, ExtendedAgentCard: true},
		DefaultInputModes:    []string{textMode, jsonMode},
		DefaultOutputModes:   []string{textMode, jsonMode},
		Skills:               []sdk.AgentSkill{},
		SecuritySchemes:      sdk.NamedSecuritySchemes{"token": sdk.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "A token of the server."}},
		SecurityRequirements: sdk.SecurityRequirementsOptions{{"token": {}}},
	}
	if !skills {
		return card
	}
	schemas := map[string]any{}
	for _, s := range a.skills {
		card.Skills = append(card.Skills, sdk.AgentSkill{
			ID: s.Name, Name: s.Name, Description: s.about(), Tags: append([]string{"pipeline"}, s.Effects...), InputModes: s.modes(), OutputModes: s.outputModes(),
		})
		one := map[string]json.RawMessage{"input": s.Input}
		if len(s.Output) > 0 {
			one["output"] = s.Output
		}
		schemas[s.Name] = one
	}
	card.Capabilities.Extensions = []sdk.AgentExtension{{URI: Schemas, Description: "The schemas of the skills.", Params: schemas}}
	return card
}

// before is a card with the fields of versions 0.3 and 1.0. The card from the SDK's adapter lacks the fields of 1.0.
type before struct {
	*sdk.AgentCard
	Version         sdk.ProtocolVersion       `json:"protocolVersion"`
	URL             string                    `json:"url"`
	Preferred       sdk.TransportProtocol     `json:"preferredTransport"`
	Additional      []map[string]string       `json:"additionalInterfaces"`
	Extended        bool                      `json:"supportsAuthenticatedExtendedCard"`
	Security        []map[string][]string     `json:"security"`
	SecuritySchemes map[string]map[string]any `json:"securitySchemes"`
}

// serveCard serves a card that clients of both versions can read.
func (a *agent) serveCard(w http.ResponseWriter, r *http.Request) {
	card := a.card(r.Context().Value(baseKey{}).(string), reads(callerOf(r.Context()).who))
	url, bearer := card.SupportedInterfaces[0].URL, card.SecuritySchemes["token"].(sdk.HTTPAuthSecurityScheme)
	w.Header().Set("Content-Type", jsonMode)
	w.Header().Set("Vary", "Authorization")
	_ = json.NewEncoder(w).Encode(before{ // an error means that the client is gone
		AgentCard: card, Version: "0.3.0", URL: url, Preferred: sdk.TransportProtocolJSONRPC, Extended: true,
		Additional:      []map[string]string{{"url": url, "transport": string(sdk.TransportProtocolHTTPJSON)}},
		Security:        []map[string][]string{{"token": {}}},
		SecuritySchemes: map[string]map[string]any{"token": {"httpAuthSecurityScheme": bearer, "type": "http", "scheme": bearer.Scheme, "description": bearer.Description}},
	})
}

// reads reports whether the caller has the role Read, with which it may see the published pipelines.
func reads(who serve.Principal) bool {
	for _, role := range who.Roles {
		if role == serve.Read || role == serve.Start {
			return true
		}
	}
	return who.Roles == nil
}

// GetExtendedAgentCard implements a2asrv.RequestHandler.
func (a *agent) GetExtendedAgentCard(ctx context.Context, _ *sdk.GetExtendedAgentCardRequest) (*sdk.AgentCard, error) {
	if !reads(callerOf(ctx).who) {
		return nil, sdk.ErrUnauthorized
	}
	return a.card(ctx.Value(baseKey{}).(string), true), nil
}

type baseKey struct{}

func (a *agent) names() (names []string) {
	for _, s := range a.skills {
		names = append(names, s.Name)
	}
	return names
}
