package portal

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

const (
	// keysPause is the shortest time between two readings of the issuer's keys: each token with a made-up key id
	// asks for new ones.
	keysPause = 5 * time.Second
	// keysFresh is how long keys are taken for the issuer's without asking again, so that one that it has given up is
	// given up here.
	keysFresh = 5 * time.Minute
	// keysOld is how long they are used while the issuer cannot be asked.
	keysOld = 24 * time.Hour
	// minRSABits is the size of the smallest RSA key that is believed.
	minRSABits = 2048
)

var (
	// errNoKeys says that the issuer's keys cannot be read.
	errNoKeys = errors.New("the issuer's keys cannot be read")
	errNoFit  = errors.New("no key of the issuer fits")
)

// unreadKey is where a context has the bool that is set when the keys cannot be read.
type unreadKey struct{}

// keySet are the issuer's keys, as oidc.KeySet. Unlike the library's own set it lets go of those that the issuer has let go
// of, and asks for new ones at most once every keysPause, whatever tokens come.
type keySet struct {
	client     *http.Client
	url        string
	algorithms []jose.SignatureAlgorithm
	now        func() time.Time

	flight     singleflight.Group
	background sync.WaitGroup

	mu     sync.Mutex
	keys   []jose.JSONWebKey
	read   time.Time // when keys were read
	asked  time.Time // when they were asked for last
	failed bool      // then
}

// VerifySignature is the payload of a token that one of the keys signed. No key is taken from the token itself.
func (k *keySet) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(raw, k.algorithms)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errNoFit
	}
	k.mu.Lock()
	keys, age := k.keys, k.now().Sub(k.read)
	k.mu.Unlock()
	if age < keysOld {
		if payload, err := verifyWith(signed, keys); err == nil {
			if age >= keysFresh {
				k.background.Go(func() { _, _ = k.renew(context.WithoutCancel(ctx)) })
			}
			return payload, nil
		}
	}
	if keys, err = k.renew(ctx); err != nil {
		if unread, ok := ctx.Value(unreadKey{}).(*bool); ok {
			*unread = true
		}
		return nil, err
	}
	return verifyWith(signed, keys)
}

// renew reads the keys again, unless that has just been done.
func (k *keySet) renew(ctx context.Context) ([]jose.JSONWebKey, error) {
	read := k.flight.DoChan("keys", func() (any, error) {
		k.mu.Lock()
		now := k.now()
		if age := now.Sub(k.asked); age >= 0 && age < keysPause {
			defer k.mu.Unlock()
			if k.failed {
				return nil, errNoKeys
			}
			return k.keys, nil
		}
		k.asked = now
		k.mu.Unlock()
		// Not for as long as the caller waits: the answer is everybody's.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issuerTimeout)
		defer cancel()
		keys, err := fetchKeys(ctx, k.client, k.url)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.failed = err != nil; k.failed {
			return nil, errNoKeys
		}
		k.keys, k.read = keys, now
		return keys, nil
	})
	select {
	case <-ctx.Done():
		return nil, errNoKeys
	case result := <-read:
		keys, _ := result.Val.([]jose.JSONWebKey)
		return keys, result.Err
	}
}

// verifyWith is the payload of what one of the keys signed.
func verifyWith(signed *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, error) {
	head := signed.Signatures[0].Header
	for _, key := range keys {
		if head.KeyID != "" && key.KeyID != head.KeyID || key.Algorithm != "" && key.Algorithm != head.Algorithm {
			continue
		}
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, nil
		}
	}
	return nil, errNoFit
}

// usable tells whether a key verifies signatures: a public one, for that, and not too short.
func usable(key jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}
