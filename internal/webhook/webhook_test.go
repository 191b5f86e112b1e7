package webhook

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// The vector comes from the reference libraries of Standard Webhooks.
func TestSign(t *testing.T) {
	key, err := Key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	at := time.Unix(1614265330, 0)
	if got := Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`), key); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`), make([]byte, 24), key); !strings.HasSuffix(got, " "+want) {
		t.Errorf("of two keys: %s", got)
	}
}

func TestKey(t *testing.T) {
	for _, secret := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_short", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", "whsec_" + strings.Repeat("AAAA", 22)} {
		if _, err := Key(secret); err == nil || len(secret) > 6 && strings.Contains(err.Error(), secret[6:]) {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "2a00:1450::1": true,
		"127.0.0.1": false, "127.8.8.8": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false, "192.0.0.192": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:8.8.8.8": true, "::127.0.0.1": false, "fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "fc00::1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "ff02::1": false, "fec0::1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

func TestSend(t *testing.T) {
	key := make([]byte, 24)
	var seen []string
	var status int
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path)
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	send := func(private bool, at string) error {
		return NewSender(private).Send(t.Context(), at, "msg_1", []byte("{}"), nil, key)
	}
	// A name that resolves to a loopback address is rejected too.
	for _, at := range []string{receiver.URL + "/t0ken", strings.Replace(receiver.URL, "127.0.0.1", "localhost", 1) + "/t0ken"} {
		if err := send(false, at); err == nil || !strings.Contains(err.Error(), "is not public") || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: %v", at, err)
		}
	}
	if len(seen) > 0 {
		t.Errorf("the receiver got %v", seen)
	}
	for s, want := range map[int]string{200: "", 204: "", 302: "status 302", 410: "status 410", 503: "status 503"} {
		if status = s; want == "" {
			if err := send(true, receiver.URL+"/hook"); err != nil {
				t.Errorf("%d: %v", s, err)
			}
		} else if err := send(true, receiver.URL+"/hook"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", s, err)
		}
	}
	for _, path := range seen {
		if path != "/hook" {
			t.Errorf("a redirect was followed to %s", path)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for address, want := range map[string][2]bool{ // public, private
		"https://example.com/a": {true, true}, "http://example.com/a": {false, true}, "https://u:p@example.com": {}, "ftp://example.com": {}, "example.com": {}, "": {}, "https://": {},
	} {
		for i, private := range []bool{false, true} {
			if err := CheckURL(address, private); (err == nil) != want[i] {
				t.Errorf("%q, private %v: %v", address, private, err)
			}
		}
	}
}
