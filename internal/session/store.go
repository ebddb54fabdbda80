package session

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"zaentrum.io/zae/internal/fault"
)

// Session is what a sign-in left: the tokens of one person at one instance.
type Session struct {
	// Instance and Issuer are the key: tokens of one issuer are never mistaken for another's.
	Instance string `json:"instance"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`

	AccessToken  string    `json:"accessToken"`
	RefreshToken string    `json:"refreshToken,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`   // of the access token; zero when the issuer named none
	Obtained     time.Time `json:"obtained,omitzero"` // when the access token was
	SignedIn     time.Time `json:"signedIn"`
}

func (s Session) sameKey(o Session) bool { return s.Instance == o.Instance && s.Issuer == o.Issuer }

// Store keeps sessions in a file that only its owner can read. Every change happens under a lock that
// other processes respect, on what the file holds at that moment.
type Store struct {
	dir string
}

const (
	storeName = "sessions.json"
	lockName  = "sessions.lock"
	lockRetry = 20 * time.Millisecond
	lockWait  = 45 * time.Second // longer than a refresh may take
	maxStore  = 1 << 20
)

// NewStore is a store in this directory, which is made when a session is first kept.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Path is the file the sessions are in.
func (s *Store) Path() string { return filepath.Join(s.dir, storeName) }

type document struct {
	Sessions []Session `json:"sessions"`
}

// Of is the newest session of an instance.
func (s *Store) Of(instance string) (Session, bool, error) {
	doc, err := s.read()
	if err != nil {
		return Session{}, false, err
	}
	found, ok := newest(doc, instance)
	return found, ok, nil
}

func newest(doc document, instance string) (Session, bool) {
	var found Session
	ok := false
	for _, one := range doc.Sessions {
		if one.Instance == instance && (!ok || one.SignedIn.After(found.SignedIn)) {
			found, ok = one, true
		}
	}
	return found, ok
}

// Keep stores a session in place of an earlier one with the same key.
func (s *Store) Keep(ctx context.Context, one Session) error {
	return s.locked(ctx, func() error { return s.replace(one) })
}

// Forget removes the sessions of an instance and returns them.
func (s *Store) Forget(ctx context.Context, instance string) ([]Session, error) {
	if _, err := os.Stat(s.Path()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // do not make a directory to forget nothing
	}
	var gone []Session
	err := s.locked(ctx, func() error {
		doc, err := s.read()
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(doc.Sessions), func(one Session) bool { return one.Instance == instance })
		if len(kept) == len(doc.Sessions) {
			return nil
		}
		for _, one := range doc.Sessions {
			if one.Instance == instance {
				gone = append(gone, one)
			}
		}
		return s.write(document{Sessions: kept})
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// replace writes one session over the one with its key. The lock must be held.
func (s *Store) replace(one Session) error {
	doc, err := s.read()
	if err != nil {
		return err
	}
	doc.Sessions = slices.DeleteFunc(doc.Sessions, one.sameKey)
	doc.Sessions = append(doc.Sessions, one)
	return s.write(doc)
}

// drop removes one session by its key. The lock must be held.
func (s *Store) drop(one Session) error {
	doc, err := s.read()
	if err != nil {
		return err
	}
	doc.Sessions = slices.DeleteFunc(doc.Sessions, one.sameKey)
	return s.write(doc)
}

// locked runs do while no other process changes the store.
func (s *Store) locked(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s.trouble("cannot be made", err)
	}
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock := flock.New(filepath.Join(s.dir, lockName), flock.SetPermissions(0o600))
	held, err := lock.TryLockContext(wait, lockRetry)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && wait.Err() == nil:
		return s.trouble("cannot be locked", err)
	case !held:
		return fault.New(fault.Internal, "another zae keeps the sessions in %s locked", s.dir).
			WithHint("wait for it to end, or set ZAE_TOKEN")
	}
	defer func() { _ = lock.Unlock() }()
	return do()
}

func (s *Store) read() (document, error) {
	info, err := os.Stat(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return document{}, nil
	}
	if err != nil {
		return document{}, s.trouble("cannot be read", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxStore {
		return document{}, s.trouble("is not a file that zae wrote", nil)
	}
	text, err := os.ReadFile(s.Path())
	if err != nil {
		return document{}, s.trouble("cannot be read", err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return document{}, s.trouble("is damaged", err)
	}
	return doc, nil
}

// write replaces the file as a whole, so that no reader meets half of it and no crash leaves half.
func (s *Store) write(doc document) (err error) {
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return s.trouble("cannot be written", err)
	}
	tmp, err := os.CreateTemp(s.dir, storeName+".*") // made with mode 0600
	if err != nil {
		return s.trouble("cannot be written", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, werr := tmp.Write(append(text, '\n'))
	serr := tmp.Sync()
	cerr := tmp.Close()
	if err := errors.Join(werr, serr, cerr); err != nil {
		return s.trouble("cannot be written", err)
	}
	if err := os.Rename(tmp.Name(), s.Path()); err != nil {
		return s.trouble("cannot be written", err)
	}
	return nil
}

// trouble is a fault of the store. The cause's text is left out where it may quote the file.
func (s *Store) trouble(what string, err error) error {
	f := fault.New(fault.NoBearer, "the stored sessions in %s: the file or its directory %s", s.Path(), what)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		f.Message += ": " + pe.Err.Error()
	}
	return f.Because(err).WithHint("mend or remove it and sign in again, or set ZAE_TOKEN")
}
