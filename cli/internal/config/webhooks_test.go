package config_test

import (
	"strings"
	"testing"
)

func TestWebhooks(t *testing.T) {
	t.Setenv("HOOK", "whsec_new")
	c := mustLoad(t, `{:webhooks {:ops {:url "https://example.com/stone" :secret {:env "HOOK"} :old-secret {:file "old"} :pipelines ["triage"] :tenant "acme"}
	                    :own {:url "http://127.0.0.1:9" :secret {:env "NO_SUCH_HOOK"} :private true}}}`, "old", "whsec_old\n")
	if len(c.Webhooks) != 2 || c.Webhooks[0].Tenant != "acme" || len(c.Webhooks[0].Pipelines) != 1 || !c.Webhooks[1].Private {
		t.Fatalf("%+v", c.Webhooks)
	}
	if all, err := c.Webhooks[0].Secrets(); err != nil || strings.Join(all, " ") != "whsec_new whsec_old" {
		t.Error(all, err)
	}
	if _, err := c.Webhooks[1].Secrets(); err == nil || err.Error() != "the secret of the webhook own: the environment variable NO_SUCH_HOOK is not set" {
		t.Error(err)
	}
}

func TestWebhooksRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{:a {:url "https://example.com"}}`:                                       "secret",
		`{:a {:url "https://example.com" :secret "whsec_x"}}`:                     "not the secret itself",
		`{:a {:url "http://example.com" :secret {:env "X"}}}`:                     "want an https URL",
		`{:a {:url "https://example.com" :secret {:env "X"} :pipeline "triage"}}`: `"pipelines"`,
	} {
		if _, err := load(t, "{:webhooks "+text+"}"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "whsec_x") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
