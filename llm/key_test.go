package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// credential is like azidentity.DefaultAzureCredential, and like the token source of
// golang.org/x/oauth2/google.
type credential struct{}

func (credential) GetToken(context.Context, string) (token string, expires time.Time, err error) {
	return "token", time.Now().Add(time.Hour), nil
}

// A deployment at Azure, with tokens of Microsoft Entra.
func ExampleKeyFunc_azure() {
	var entra credential
	model := openai.New(openai.Config{
		Model: "my-deployment", URL: "https://my-resource.openai.azure.com/openai/v1",
		KeyFunc: func(ctx context.Context) (llm.Secret, time.Time, error) {
			token, expires, err := entra.GetToken(ctx, "https://cognitiveservices.azure.com/.default")
			return llm.Secret(token), expires, err
		},
	})
	fmt.Println(model.Info().Endpoint, model.Check())
	// Output: https://my-resource.openai.azure.com/openai/v1/chat/completions <nil>
}

// Gemini at Vertex AI, with tokens of a service account.
func ExampleKeyFunc_vertex() {
	var account credential
	model := gemini.New(gemini.Config{
		Model: "gemini-2.5-pro", URL: "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/google",
		KeyFunc: func(ctx context.Context) (llm.Secret, time.Time, error) {
			token, expires, err := account.GetToken(ctx, "https://www.googleapis.com/auth/cloud-platform")
			return llm.Secret(token), expires, err
		},
	})
	fmt.Println(model.Check())
	// Output: <nil>
}

// sign is like the signer of the AWS SDK, with which it is
// signer.SignHTTP(req.Context(), credentials, req, hash, "bedrock", region, time.Now()).
func sign(req *http.Request, body []byte) error {
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 of %d bytes", len(body)))
	return nil
}

// The OpenAI endpoint of Amazon Bedrock, with requests that are signed.
func Example_bedrock() {
	model := openai.New(openai.Config{
		Model: "openai.gpt-oss-120b-1:0", URL: "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1", Protocol: openai.ChatCompletions,
		Edit: func(req *http.Request) error {
			content, err := req.GetBody()
			if err != nil {
				return err
			}
			body, err := io.ReadAll(content)
			if err != nil {
				return err
			}
			return sign(req, body)
		},
	})
	fmt.Println(model.Check())
	// Output: <nil>
}

// keyed makes a model of each provider, with the header in which it sends a key.
var keyed = map[string]struct {
	make           func(url string, key llm.KeyFunc, edit func(*http.Request) error) llm.Model
	header, prefix string
}{
	"openai": {func(url string, key llm.KeyFunc, edit func(*http.Request) error) llm.Model {
		return openai.New(openai.Config{Model: "m", URL: url, KeyFunc: key, Edit: edit})
	}, "Authorization", "Bearer "},
	"anthropic": {func(url string, key llm.KeyFunc, edit func(*http.Request) error) llm.Model {
		return anthropic.New(anthropic.Config{Model: "m", URL: url, KeyFunc: key, Edit: edit})
	}, "X-Api-Key", ""},
	"gemini": {func(url string, key llm.KeyFunc, edit func(*http.Request) error) llm.Model {
		return gemini.New(gemini.Config{Model: "m", URL: url, KeyFunc: key, Edit: edit})
	}, "X-Goog-Api-Key", ""},
}

// guarded is a server that refuses all keys but one.
type guarded struct {
	*httptest.Server
	mu   sync.Mutex
	good string
	seen []string
}

func newGuarded(t *testing.T, header, good string) *guarded {
	g := &guarded{good: good}
	yes := script.Func(func(int, *llm.Request) script.Answer { return script.Text("yes") })
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		key := r.Header.Get(header)
		g.seen = append(g.seen, key)
		good := g.good
		g.mu.Unlock()
		if key != good {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, key)
			return
		}
		yes.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

func answers(t *testing.T, m llm.Model) error {
	t.Helper()
	_, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("?")}})
	return err
}

func TestKeysThatChange(t *testing.T) {
	for name, provider := range keyed {
		t.Run(name, func(t *testing.T) {
			server := newGuarded(t, provider.header, provider.prefix+"first-key")
			reads, life := 0, time.Hour
			keys := []llm.Secret{"first-key", "second-key", "third-key"}
			m := provider.make(server.URL, func(context.Context) (llm.Secret, time.Time, error) {
				reads++
				return keys[min(reads, len(keys))-1], time.Now().Add(life), nil
			}, nil)
			for range 2 {
				if err := answers(t, m); err != nil || reads != 1 {
					t.Fatalf("%v after %d reads of the key, want 1", err, reads)
				}
			}
			// The server has another key: the refused one is read again.
			server.good, life = provider.prefix+"second-key", -time.Second
			if err := answers(t, m); err != nil || reads != 2 {
				t.Errorf("refused: %v after %d reads, want 2", err, reads)
			}
			// The second key has expired, and the third is refused: that is an error without the key.
			err := answers(t, m)
			var h *llm.HTTPError
			if !errors.As(err, &h) || h.Status != 401 || strings.Contains(h.Body, "third-key") {
				t.Errorf("error %v, want status 401 without the key", err)
			}
			if reads != 4 { // once because it expired, once because it was refused
				t.Errorf("%d reads of the key, want 4", reads)
			}
		})
	}
}

func TestKeyFuncFails(t *testing.T) {
	server := newGuarded(t, "Authorization", "")
	failed := errors.New("no network")
	for name, tc := range map[string]struct {
		config openai.Config
		want   string
	}{
		"an error": {openai.Config{KeyFunc: func(context.Context) (llm.Secret, time.Time, error) { return "", time.Time{}, failed }}, "no key: no network"},
		"no key":   {openai.Config{KeyFunc: func(context.Context) (llm.Secret, time.Time, error) { return "", time.Time{}, nil }}, "KeyFunc returned no key"},
		"two keys": {openai.Config{Key: "k", KeyFunc: func(context.Context) (llm.Secret, time.Time, error) { return "k", time.Time{}, nil }}, "Key and KeyFunc are set"},
		"edit":     {openai.Config{Edit: func(*http.Request) error { return failed }}, "Edit: no network"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.URL, tc.config.Model, tc.config.Retry.Max = server.URL, "m", -1
			err := answers(t, openai.New(tc.config))
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(server.seen) > 0 {
				t.Errorf("error %v after %d requests, want %q after none", err, len(server.seen), tc.want)
			}
		})
	}
}

// Edit sees each request with its key, and the key of the environment is not sent.
func TestEdit(t *testing.T) {
	for name, provider := range keyed {
		t.Run(name, func(t *testing.T) {
			t.Setenv(strings.ToUpper(name)+"_API_KEY", "environment-key")
			server := newGuarded(t, "X-Signature", "signed")
			m := provider.make(server.URL, nil, func(req *http.Request) error {
				if got := req.Header.Get(provider.header); got != "" {
					t.Errorf("the key of the environment is sent: %q", got)
				}
				req.Header.Set("X-Signature", "signed")
				return nil
			})
			if err := answers(t, m); err != nil {
				t.Error(err)
			}
		})
	}
}
