package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/serve"
)

// Schemas is the URI of an extension of the card. Its parameters are the JSON Schemas of each skill: of the "input" and,
// if it is known, of the "output".
const Schemas = "https://github.com/stonelayer/stone/tree/main/x/a2a#schemas"

// card describes the agent to a caller, with the skills if it may see them.
func (a *agent) card(base string, skills bool) *sdk.AgentCard {
	name, about := "stone", "Pipelines: "+strings.Join(a.names(), ", ")
	if len(a.skills) == 1 {
		name, about = a.skills[0].Name, a.skills[0].about()
	}
	if !skills {
		name, about = "stone", "Send a token to see the skills of this agent."
	}
	card := &sdk.AgentCard{
		Name: cmp.Or(a.cfg.Name, name), Description: cmp.Or(a.cfg.Description, about), Version: cmp.Or(a.cfg.Version, "1"),
		SupportedInterfaces: []*sdk.AgentInterface{
			sdk.NewAgentInterface(base+at, sdk.TransportProtocolJSONRPC), sdk.NewAgentInterface(base+at, sdk.TransportProtocolHTTPJSON),
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

func (a *agent) serveCard(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Authorization")
	_ = json.NewEncoder(w).Encode(a.card(a.baseOf(r), reads(callerOf(r.Context())))) // or the client has gone
}

// reads reports whether a caller may see the published pipelines.
func reads(c caller) bool {
	for _, role := range c.who.Roles {
		if role == serve.Read || role == serve.Start {
			return true
		}
	}
	return c.who.Roles == nil
}

// GetExtendedAgentCard implements a2asrv.RequestHandler.
func (a *agent) GetExtendedAgentCard(ctx context.Context, _ *sdk.GetExtendedAgentCardRequest) (*sdk.AgentCard, error) {
	if c := callerOf(ctx); !reads(c) {
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
