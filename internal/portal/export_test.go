package portal

// Calls are the method, path and name of every call of the API.
func (s *Server) Calls() (all [][3]string) {
	for _, r := range s.routes() {
		all = append(all, [3]string{r.method, r.path, r.id})
	}
	return all
}
