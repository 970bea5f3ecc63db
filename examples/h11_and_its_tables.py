"""A difference between h11 and the tables that it documents, found by learning its machine: ten lines to see it.

h11 may send a response before a request has come, such as 408. A request that comes then is a protocol error by its
tables, and `next_event` is documented to raise RemoteProtocolError. It raises AttributeError, in 0.9.0 and in 0.16.0.
`python -m paper run protocol_libraries` found the word: `response get`.

    python examples/h11_and_its_tables.py
"""

import h11

server = h11.Connection(h11.SERVER)
server.send(h11.Response(status_code=408, headers=[("Transfer-Encoding", "chunked")]))
server.receive_data(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
try:
    server.next_event()
    print(f"h11 {h11.__version__}: accepted")
except Exception as error:
    documented = isinstance(error, h11.RemoteProtocolError)
    print(f"h11 {h11.__version__}: {type(error).__name__}, {'as' if documented else 'not as'} documented: {error}")
