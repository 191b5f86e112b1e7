package cli

import (
	"sync"

	"github.com/stonelayer/stone/call"
)

// applicator is the result of Applicator.
var applicator struct {
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

// fillApplicator reads the configuration if the pipeline wants it, or if its table of models is needed.
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
