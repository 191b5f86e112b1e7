package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/llm"
)

// DefaultModel returns the model that the user of a pipeline has chosen. The provider, the model's name and the URL come from the
// flags --provider, --model and --url of the command without a sub-command, from STONE_PROVIDER, STONE_MODEL and STONE_URL, or
// from stone.edn, stone.json or settings.json in the nearest .stone directory, in that order. The default provider is openai.
//
// The key is read from OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY. It is sent only to the provider's own servers and to
// the URL given by --url or STONE_URL. If a file contains a URL, only the key configured for this URL in the same file is sent to
// it, as in "key": {"env": "MY_KEY"}.
//
// The model is chosen when it is first used, so a package can store the result in a variable. stone.Validate reports an invalid
// choice.
//
// An address in the project's settings is used only if the user trusts these settings; see the trust command.
func DefaultModel() llm.Model {
	defaultWanted.Store(true)
	return &defaultModel{}
}

// defaultWanted is set when a pipeline has a default model.
var defaultWanted atomic.Bool

type defaultModel struct {
	mu    sync.Mutex
	of    config.Settings
	model llm.Model // model for these settings; nil until created
}

// choose returns a client for the model that the current settings select.
func (d *defaultModel) choose() (llm.Model, error) {
	s, err := settings()
	switch {
	case err != nil:
		return nil, err
	case s.Model == "":
		return nil, errors.New(`no model is chosen: set STONE_MODEL, or "model" in .stone/settings.json`)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.model != nil && d.of == s {
		return d.model, nil
	}
	m, err := connect(s, config.Connection{Model: s.Model})
	if err == nil {
		d.of, d.model = s, m
	}
	return m, err
}

// connect returns a client for the model c.Model at the server given in the settings.
func connect(s config.Settings, c config.Connection) (llm.Model, error) {
	protocol := cmp.Or(s.Provider, "openai")
	if c.URL = s.URL; s.KeyEnv != "" { // otherwise the provider's key is used, but only for the provider's own servers
		c.Key = llm.Secret(os.Getenv(s.KeyEnv))
		if c.Key == "" && s.KeyEnv != config.KeyEnv(protocol) {
			return nil, fmt.Errorf("the environment variable %s, which the settings name for the API key, is not set", s.KeyEnv)
		}
	}
	return config.Connect(protocol, c), nil
}

// Check implements llm.Checker.
func (d *defaultModel) Check() error {
	m, err := d.choose()
	if err != nil {
		return err
	}
	return m.(llm.Checker).Check()
}

// Info implements llm.Informer.
func (d *defaultModel) Info() llm.Info {
	m, err := d.choose()
	if err != nil {
		return llm.Info{}
	}
	return m.(llm.Informer).Info()
}

// Stream implements llm.Model.
func (d *defaultModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	m, err := d.choose()
	if err == nil {
		err = trustedSettings()
	}
	if err != nil {
		return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Reply: &llm.Reply{}}, err) }
	}
	return m.Stream(ctx, req)
}

// trustedSettings returns an error if the project's settings name an address and the user has not trusted them. A command asks
// the user before it runs a pipeline; other programs cannot ask.
func trustedSettings() error {
	f, err := foundSettings()
	if err != nil {
		return err
	}
	return f.trusted()
}

// trusted returns an error if the user has not trusted the settings. It does not ask the user.
func (f found) trusted() error {
	if len(f.wants) == 0 || trusting.Load() || os.Getenv(trustEnv) == "1" {
		return nil
	}
	changed, _, err := f.changed()
	if err == nil && len(changed) > 0 {
		err = fmt.Errorf("%s is not trusted: %s: run %s, or set %s=1",
			f.dir, f.does(), quotedAll("stone", "trust", filepath.Dir(f.dir)), trustEnv)
	}
	return err
}

// applicator holds the result of the function Applicator.
var applicator struct {
	sync.Mutex
	app    call.Applicator
	wanted bool
}

// Applicator returns the applicator that the user of a pipeline has configured: in stone.edn or stone.json in the nearest .stone
// directory, or in the file given by the --config flag. Every call returns the same applicator.
//
// Its capabilities are added after the command has built the pipeline and before the pipeline is validated, so a package can
// store the applicator in a variable. In other programs, such as tests, it stays empty: use an applicator of your own. A pipeline
// that uses it may have only the effects that the configuration grants, and is limited by the configured budget.
func Applicator() *call.Applicator {
	applicator.Lock()
	defer applicator.Unlock()
	applicator.wanted = true
	return &applicator.app
}

func applicatorWanted() bool {
	applicator.Lock()
	defer applicator.Unlock()
	return applicator.wanted
}

// fillApplicator reads the configuration if the pipeline uses it or needs its table of models.
func (a *app) fillApplicator(models bool) error {
	applicator.Lock()
	defer applicator.Unlock()
	if !applicator.wanted && !models {
		return nil
	}
	conf, err := a.configured()
	if err != nil {
		return err
	}
	if applicator.wanted {
		applicator.app = *conf.App
	}
	return nil
}
