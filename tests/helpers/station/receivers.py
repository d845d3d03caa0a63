"""Those who are told: a web server, a mail server and an MQTT broker, each with just what a sender needs of one."""

import contextlib
import http.server
import socket
import socketserver
import struct
import threading


class Served:
    """A server in a thread, closed at the end."""

    def __init__(self, server):
        self.server = server
        self.port = server.server_address[1]
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


class Web(Served):
    """Keeps what is POSTed; answers with the next of `answers`, 200 when there is none left."""

    def __init__(self, answers=()):
        self.requests: list[tuple[dict, bytes]] = []
        self.answers = list(answers)
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                web.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(web.answers.pop(0) if web.answers else 200)
                self.send_header("Location", "http://elsewhere.invalid/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_args):
                pass

        super().__init__(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        self.url = f"http://127.0.0.1:{self.port}/hook"


class Mail(Served):
    """A mail server: keeps each message; `refuses` answers 550 to a recipient that begins so."""

    def __init__(self, refuses="nobody"):
        self.mails: list[bytes] = []
        mail = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                self.say(b"220 test")
                while line := self.rfile.readline():
                    word = line[:4].upper()
                    if word in (b"EHLO", b"HELO"):
                        self.say(b"250 test")
                    elif word == b"RCPT" and f"<{refuses}".encode() in line:
                        self.say(b"550 no such user")
                    elif word == b"DATA":
                        self.say(b"354 go on")
                        lines = iter(self.rfile.readline, b".\r\n")
                        mail.mails.append(b"".join(line[1:] if line.startswith(b"..") else line for line in lines))
                        self.say(b"250 taken")
                    elif word == b"QUIT":
                        self.say(b"221 bye")
                        return
                    else:
                        self.say(b"250 ok")

            def say(self, text):
                self.wfile.write(text + b"\r\n")

        super().__init__(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))


class Broker(Served):
    """An MQTT 3.1.1 broker that keeps what is published, acknowledges QoS 1 and publishes wills of the lost."""

    def __init__(self, port=0):
        self.published: list[tuple[str, str, bool]] = []
        self.clients: list[str] = []
        self.sockets: list[socket.socket] = []
        broker = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                broker.sockets.append(self.request)
                will = None
                with contextlib.suppress(OSError, EOFError):
                    while True:
                        kind, flags, body = self.packet()
                        if kind == 1:
                            will = self.connect(body)
                        elif kind == 3:
                            self.publish(flags, body)
                        elif kind == 12:
                            self.request.sendall(b"\xd0\x00")
                        elif kind == 14:
                            return
                if will is not None:
                    broker.published.append(will)

            def packet(self):
                first = self.exactly(1)[0]
                length, shift = 0, 0
                while True:
                    byte = self.exactly(1)[0]
                    length |= (byte & 127) << shift
                    shift += 7
                    if not byte & 128:
                        return first >> 4, first & 15, self.exactly(length)

            def exactly(self, n):
                data = b""
                while len(data) < n:
                    part = self.request.recv(n - len(data))
                    if not part:
                        raise EOFError
                    data += part
                return data

            def connect(self, body):
                flags, rest = body[7], body[10:]
                client, rest = text_of(rest)
                broker.clients.append(client)
                will = None
                if flags & 4:
                    topic, rest = text_of(rest)
                    message, rest = text_of(rest)
                    will = topic, message, bool(flags & 32)
                self.request.sendall(b"\x20\x02\x00\x00")
                return will

            def publish(self, flags, body):
                topic, rest = text_of(body)
                if flags >> 1 & 3:
                    number, rest = rest[:2], rest[2:]
                    broker.published.append((topic, rest.decode(), bool(flags & 1)))
                    self.request.sendall(b"\x40\x02" + number)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False

        super().__init__(Server(("127.0.0.1", port), Handler))

    def cut(self):
        """Lose every connection."""
        for client in self.sockets:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def on(self, topic):
        """What was published on a topic."""
        return [text for name, text, _ in self.published if name == topic]

    def __exit__(self, *_):
        self.cut()
        super().__exit__()


def text_of(data):
    (length,) = struct.unpack(">H", data[:2])
    return data[2 : 2 + length].decode(), data[2 + length :]
