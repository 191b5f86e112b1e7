package client

import "time"

// SetSilence sets how long a stream may have nothing, until the returned function is called.
func SetSilence(d time.Duration) (reset func()) {
	was := silence
	silence = d
	return func() { silence = was }
}
