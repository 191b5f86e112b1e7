package temporal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/limit"
)

// Options of a carrier. The zero value suits most programs.
type Options struct {
	// Heartbeat is how long a worker may be silent before its leaf goes to another one; 15 s
	// if zero.
	Heartbeat time.Duration
	// Timeout is how long a worker may work on a leaf; a day if zero. It is not a substitute
	// for the option stone.Timeout of the leaf.
	Timeout time.Duration
}

// Names of what workers register.
const (
	leafActivity = "stone.Leaf"
	runActivity  = "stone.Run"
	runWorkflow  = "stone.Drive"
	answered     = "answered" // signal of the workflow
)

// Carrier returns the carrier that sends leaves to workers as standalone activities. The
// pools of remote.Route are task queues.
func Carrier(c client.Client, opts Options) remote.Carrier {
	opts.Heartbeat, opts.Timeout = cmp.Or(opts.Heartbeat, 15*time.Second), cmp.Or(opts.Timeout, 24*time.Hour)
	return &carrier{c, opts}
}

type carrier struct {
	client client.Client
	opts   Options
}

// maxRun is the length in bytes of a run id: with the digest, the id of an activity must fit
// into 255.
const maxRun = 180

func checkRun(run string) error {
	if run == "" || len(run) > maxRun {
		return fmt.Errorf("run id %q has %d bytes: want 1 to %d, or Temporal cannot store it", run, len(run), maxRun)
	}
	return nil
}

func activityID(w remote.Work) string { return w.Run + "/" + w.ID.String() }

// priority returns a rank as Temporal has it. The name of the tenant stays here.
func priority(r limit.Rank) (p temporal.Priority) {
	switch {
	case r.Interactive:
		p.PriorityKey = 1
	case r.Priority != 0: // 0 is 3
		p.PriorityKey = 3 - cmp.Compare(r.Priority, 0)
	}
	if r.Tenant != "" {
		digest := sha256.Sum256([]byte(r.Tenant))
		p.FairnessKey = hex.EncodeToString(digest[:16])
	}
	return p
}

// retries is the retry policy of an activity. The number of retries has no limit: a delivery that the server
// loses under load counts as an attempt.
var retries = temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 10 * time.Second}

// Send implements [remote.Carrier].
func (c *carrier) Send(ctx context.Context, pool string, w remote.Work) error {
	if err := checkRun(w.Run); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	// A closed activity may run again, because only the journal knows whether its result is
	// there.
	_, err := c.client.ExecuteActivity(ctx, client.StartActivityOptions{
		ID: activityID(w), TaskQueue: pool,
		StartToCloseTimeout: c.opts.Timeout, HeartbeatTimeout: c.opts.Heartbeat, RetryPolicy: &retries,
		ActivityIDConflictPolicy: enumspb.ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING,
		ActivityIDReusePolicy:    enumspb.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		Priority:                 priority(limit.RankOf(ctx)),
	}, leafActivity, w)
	return err
}

// Cancel implements [remote.Carrier].
func (c *carrier) Cancel(ctx context.Context, w remote.Work) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	h := c.client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: activityID(w)})
	err := h.Cancel(ctx, client.CancelActivityOptions{Reason: "nobody waits for it"})
	if gone := (*serviceerror.NotFound)(nil); errors.As(err, &gone) {
		return nil
	}
	return err
}
