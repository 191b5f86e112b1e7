package cli

import (
	"sync"

	"github.com/stonelayer/stone/call"
)

// shared is the result of Applicator.
var shared struct {
	sync.Mutex
	app    call.Applicator
	wanted bool
}

// Applicator returns the applicator that the user of a pipeline configures, in
// stone.edn or stone.json in the nearest directory .stone, or with the flag
// --config. It is the same one each time.
//
// It is filled when the command has made the pipeline, before that is validated or
// run, so that a package can have it in a variable. Outside of the command it is
// empty: give calls an applicator of your own in tests. A pipeline that uses it is
// limited as a whole to the grants and the budget of the configuration.
func Applicator() *call.Applicator {
	shared.Lock()
	defer shared.Unlock()
	shared.wanted = true
	return &shared.app
}

func applicatorWanted() bool {
	shared.Lock()
	defer shared.Unlock()
	return shared.wanted
}

// fillApplicator reads the configuration if the pipeline wants it, or if its table of models is needed.
func (a *app) fillApplicator(models bool) error {
	shared.Lock()
	defer shared.Unlock()
	if !shared.wanted && !models {
		return nil
	}
	conf, err := a.configured()
	if err != nil {
		return err
	}
	if shared.wanted {
		shared.app = *conf.App
	}
	return nil
}
