//go:build alone

package bench

var (
	peerBuilders   []builder
	peerDurables   []durable
	peerFanners    []fanner
	peerFleets     []fleet
	peerResumables []resumable
	peerTurners    []turner
)

func peerLiners[T content[T]]() []liner[T] { return nil }
