package limit

import "time"

// SetWindow sets the window in which shared limits count.
func (l *Limiter) SetWindow(d time.Duration) { l.share.window = d }
