// SPDX-License-Identifier: Apache-2.0
// The Java driver 3.x, which cassandra-stress uses. A program of tests/interop/run.
import com.datastax.driver.core.*;
import com.datastax.driver.core.exceptions.*;
import com.datastax.driver.core.policies.ConstantReconnectionPolicy;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

public class Interop {
	interface Body {
		void run() throws Exception;
	}

	static final String HOST = System.getenv("HOST");
	static final int PORT = Integer.parseInt(System.getenv("PORT"));
	// Seconds that something may take which has to happen.
	static final int PATIENCE = Integer.parseInt(System.getenv().getOrDefault("PATIENCE", "180"));
	static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
	static String prefix = "";

	static void say(String line)
	{
		System.out.println(line.replace('\n', ' '));
		System.out.flush();
	}

	static void ask(String what) throws Exception
	{
		say("ask: " + what);
		String answer = in.readLine();
		if (!"done".equals(answer))
			throw new Exception(answer);
	}

	static void check(String name, Body body)
	{
		try {
			body.run();
			say("PASS " + prefix + name);
		} catch (Throwable error) {
			StringBuilder where = new StringBuilder();
			for (StackTraceElement at : error.getStackTrace())
				if (at.getFileName() != null && at.getFileName().equals("Interop.java"))
					where.append(" line ").append(at.getLineNumber());
			say("FAIL " + prefix + name + ": " + error + where);
		}
	}

	static void equal(Object left, Object right)
	{
		if (!Objects.equals(left, right))
			throw new AssertionError(left + " is not " + right);
	}

	static void holds(boolean condition, Object what)
	{
		if (!condition)
			throw new AssertionError(String.valueOf(what));
	}

	static <T extends Throwable> T raises(Class<T> kind, Body body)
	{
		try {
			body.run();
		} catch (Throwable error) {
			if (error instanceof NoHostAvailableException)
				error = ((NoHostAvailableException)error).getErrors().values().iterator().next();
			if (kind.isInstance(error))
				return kind.cast(error);
			throw new AssertionError(error + " is no " + kind.getSimpleName(), error);
		}
		throw new AssertionError("no " + kind.getSimpleName());
	}

	static void until(BooleanSupplier condition, String what) throws Exception
	{
		long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
		while (!condition.getAsBoolean()) {
			holds(System.nanoTime() < end, what + " did not happen");
			Thread.sleep(50);
		}
	}

	static Session connect(ProtocolVersion version, ProtocolOptions.Compression compression)
	{
		return Cluster.builder()
		    .addContactPoint(HOST)
		    .withPort(PORT)
		    .withProtocolVersion(version)
		    .withCompression(compression)
		    .withoutJMXReporting()
		    .withPoolingOptions(new PoolingOptions()
		                            .setMaxRequestsPerConnection(HostDistance.LOCAL, 2048)
		                            .setMaxQueueSize(10000))
		    .withReconnectionPolicy(new ConstantReconnectionPolicy(200))
		    .withSocketOptions(new SocketOptions().setConnectTimeoutMillis(20000)
		                           .setReadTimeoutMillis(30000))
		    .build()
		    .connect();
	}

	static final String[] TYPES = {"ascii", "bigint", "blob", "boolean", "date", "decimal", "double",
	    "duration", "float", "inet", "int", "smallint", "text", "time", "timestamp", "timeuuid",
	    "tinyint", "uuid", "varint", "list<int>", "set<text>", "map<text, bigint>",
	    "frozen<list<frozen<set<int>>>>", "tuple<int, text>", "frozen<address>"};

	static void schema(Session session)
	{
		session.execute("CREATE KEYSPACE IF NOT EXISTS interop WITH replication = "
		    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
		session.execute("USE interop");
		session.execute("CREATE TYPE IF NOT EXISTS address (street text, zip int, tags set<text>)");
		session.execute("CREATE TABLE IF NOT EXISTS kv (k text PRIMARY KEY, v int)");
		session.execute("CREATE TABLE IF NOT EXISTS wide (p int, c int, v text, PRIMARY KEY (p, c))");
		session.execute("CREATE TABLE IF NOT EXISTS counts (k text PRIMARY KEY, n counter)");
		StringBuilder columns = new StringBuilder();
		int at = 0;
		for (String type : TYPES)
			columns.append(", c").append(at++).append(' ').append(type);
		session.execute("CREATE TABLE IF NOT EXISTS types (k int PRIMARY KEY" + columns + ")");
	}

	static void types(Session session) throws Exception
	{
		TableMetadata table =
		    session.getCluster().getMetadata().getKeyspace("interop").getTable("types");
		TupleValue pair = ((TupleType)table.getColumn("c23").getType()).newValue(1, "one");
		UDTValue place = ((UserType)table.getColumn("c24").getType()).newValue()
		    .setString("street", "Road").setInt("zip", 7)
		    .setSet("tags", new HashSet<>(List.of("a", "b")));
		Object[] values = {"ascii", Long.MIN_VALUE, ByteBuffer.wrap(new byte[100000]), true,
		    LocalDate.fromYearMonthDay(1969, 7, 20), new BigDecimal("-12345.000000000000000001"),
		    -1.5e300, Duration.newInstance(1, 2, 3), 0.5f, InetAddress.getByName("2001:db8::1"),
		    Integer.MIN_VALUE, (short)-32768, "schöner Text 漢字 😀", 86399999999999L, new Date(-1),
		    UUID.fromString("550e8400-e29b-11d4-a716-446655440000"), (byte)-128, new UUID(1, 2),
		    BigInteger.ONE.shiftLeft(200).negate(), List.of(3, 1, 2), new HashSet<>(List.of("x", "ä")),
		    Map.of("one", 1L), List.of(Set.of(1), Set.of(2)), pair, place};
		boolean isOld = version(session) < 4;
		for (int i = 0; i < TYPES.length; i++) {
			// To protocol v3 these are custom types, for which the driver has no codec.
			if (isOld && List.of("date", "time", "smallint", "tinyint").contains(TYPES[i]))
				continue;
			PreparedStatement write =
			    session.prepare("INSERT INTO types (k, c" + i + ") VALUES (1, ?)");
			session.execute(write.bind(values[i]));
			Object got = session.execute("SELECT c" + i + " FROM types WHERE k = 1").one()
			                 .getObject(0);
			// The type inside a tuple or a user type is not equal where it came another way.
			if (i >= 23)
				equal(got.toString(), values[i].toString());
			else
				equal(got, values[i]);
			session.execute(write.bind((Object)null));
			session.execute("INSERT INTO types (k) VALUES (1)");
			holds(session.execute("SELECT c" + i + " FROM types WHERE k = 1").one().isNull(0),
			    TYPES[i]);
		}
	}

	static int version(Session session)
	{
		return session.getCluster().getConfiguration().getProtocolOptions().getProtocolVersion()
		    .toInt();
	}

	static void prepared(Session session)
	{
		PreparedStatement write = session.prepare("INSERT INTO kv (k, v) VALUES (:key, :value)");
		session.execute(write.bind().setString("key", "named").setInt("value", 1));
		if (version(session) > 3)
			session.execute(write.bind().setString("key", "named"));
		equal(session.execute("SELECT v FROM kv WHERE k = 'named'").one().getInt(0), 1);
		session.execute("INSERT INTO kv (k, v) VALUES (?, ?)", "p", 3);
		session.execute("DROP TABLE IF EXISTS altered");
		session.execute("CREATE TABLE altered (k int PRIMARY KEY, a int)");
		PreparedStatement read = session.prepare("SELECT k, a FROM altered WHERE k = ?");
		write = session.prepare("INSERT INTO altered (k, a) VALUES (?, ?)");
		session.execute("ALTER TABLE altered ADD b text");
		session.execute(write.bind(1, 2));
		equal(session.execute(read.bind(1)).one().getInt("a"), 2);
	}

	static void paging(Session session)
	{
		session.execute("TRUNCATE wide");
		PreparedStatement write = session.prepare("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)");
		for (int c = 0; c < 500; c++)
			session.execute(write.bind(1, c, "v" + c));
		int expected = 0;
		for (Row row : session.execute(
		         new SimpleStatement("SELECT c FROM wide WHERE p = 1").setFetchSize(37)))
			equal(row.getInt(0), expected++);
		equal(expected, 500);
		String state = null;
		int total = 0;
		do {
			Statement statement = new SimpleStatement("SELECT c FROM wide WHERE p = 1");
			statement.setFetchSize(100);
			if (state != null)
				statement.setPagingState(PagingState.fromString(state));
			ResultSet page = session.execute(statement);
			total += page.getAvailableWithoutFetching();
			PagingState next = page.getExecutionInfo().getPagingState();
			state = next == null ? null : next.toString();
		} while (state != null);
		equal(total, 500);
	}

	static void batches(Session session)
	{
		PreparedStatement write = session.prepare("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)");
		session.execute(new BatchStatement().add(write.bind(5, 1, "a")).add(write.bind(5, 2, "b")));
		equal(session.execute("SELECT * FROM wide WHERE p = 5").all().size(), 2);
		session.execute("TRUNCATE counts");
		BatchStatement counters = new BatchStatement(BatchStatement.Type.COUNTER);
		PreparedStatement add = session.prepare("UPDATE counts SET n = n + ? WHERE k = ?");
		for (int i = 0; i < 10; i++)
			counters.add(add.bind(2L, "x"));
		session.execute(counters);
		session.execute(add.bind(-5L, "x"));
		equal(session.execute("SELECT n FROM counts").one().getLong(0), 15L);
	}

	static void conditional(Session session)
	{
		session.execute("DELETE FROM kv WHERE k = 'lwt'");
		String insert = "INSERT INTO kv (k, v) VALUES ('lwt', 1) IF NOT EXISTS";
		holds(session.execute(insert).wasApplied(), "first");
		ResultSet second = session.execute(insert);
		holds(!second.wasApplied(), "second");
		equal(second.one().getInt("v"), 1);
		PreparedStatement update = session.prepare("UPDATE kv SET v = ? WHERE k = 'lwt' IF v = ?");
		holds(!session.execute(update.bind(2, 9)).wasApplied(), "wrong");
		holds(session.execute(update.bind(2, 1)).wasApplied(), "right");
	}

	static void concurrent(Session session) throws Exception
	{
		PreparedStatement write = session.prepare("INSERT INTO kv (k, v) VALUES (?, ?)");
		PreparedStatement read = session.prepare("SELECT v FROM kv WHERE k = ?");
		for (int round = 0; round < 5; round++) {
			List<ResultSetFuture> futures = new ArrayList<>();
			for (int i = 0; i < 1000; i++)
				futures.add(session.executeAsync(write.bind("c" + i, i + round)));
			for (ResultSetFuture future : futures)
				future.getUninterruptibly(30, TimeUnit.SECONDS);
			futures.clear();
			for (int i = 0; i < 1000; i++)
				futures.add(session.executeAsync(read.bind("c" + i)));
			for (int i = 0; i < 1000; i++)
				equal(futures.get(i).getUninterruptibly(30, TimeUnit.SECONDS).one().getInt(0),
				    i + round);
		}
	}

	static void errors(Session session)
	{
		raises(SyntaxError.class, () -> session.execute("SELEC"));
		raises(InvalidQueryException.class, () -> session.execute("SELECT * FROM nothing"));
		AlreadyExistsException exists = raises(AlreadyExistsException.class,
		    () -> session.execute("CREATE TABLE kv (k int PRIMARY KEY)"));
		equal(exists.getKeyspace() + "." + exists.getTable(), "interop.kv");
		raises(UnauthorizedException.class, () -> session.execute("DROP KEYSPACE system"));
		session.execute("CREATE KEYSPACE IF NOT EXISTS three WITH replication = "
		    + "{'class': 'SimpleStrategy', 'replication_factor': 3}");
		session.execute("CREATE TABLE IF NOT EXISTS three.t (k int PRIMARY KEY)");
		UnavailableException unavailable = raises(UnavailableException.class,
		    () -> session.execute(new SimpleStatement("INSERT INTO three.t (k) VALUES (1)")
		                              .setConsistencyLevel(ConsistencyLevel.QUORUM)));
		equal(unavailable.getRequiredReplicas() + "/" + unavailable.getAliveReplicas(), "2/1");
		session.execute("DROP KEYSPACE three");
	}

	static void tracing(Session session) throws Exception
	{
		QueryTrace trace =
		    session.execute(new SimpleStatement("SELECT * FROM kv WHERE k = 'c1'").enableTracing())
		        .getExecutionInfo().getQueryTrace();
		// A trace is written after its answer, here as there; the driver alone asks for it for 93 ms.
		until(() -> {
			try {
				return trace.getEvents() != null;
			} catch (TraceRetrievalException error) {
				return false;
			}
		}, "the trace");
		equal(trace.getRequestType(), "Execute CQL3 query");
		holds(!trace.getEvents().isEmpty() && trace.getDurationMicros() > 0, trace.getEvents());
	}

	static void metadata(Session session)
	{
		Metadata metadata = session.getCluster().getMetadata();
		String text = metadata.getKeyspace("interop").exportAsString();
		holds(text.contains("CREATE TABLE interop.wide") && text.contains("CREATE TYPE"), text);
		Host host = metadata.getAllHosts().iterator().next();
		equal(host.getDatacenter() + "/" + host.getRack(), "datacenter1/rack1");
		equal(host.getTokens().size(), 16);
		equal(metadata.getReplicas("interop", ByteBuffer.wrap(new byte[] {1})).size(), 1);
		holds(metadata.checkSchemaAgreement(), "agreement");
		holds(host.getCassandraVersion().getMajor() == 4, host.getCassandraVersion());
	}

	static void events(Session session, Session other) throws Exception
	{
		Metadata seen = other.getCluster().getMetadata();
		session.execute("CREATE KEYSPACE seen WITH replication = "
		    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
		until(() -> seen.getKeyspace("seen") != null, "CREATE KEYSPACE");
		session.execute("CREATE TABLE seen.t (k int PRIMARY KEY)");
		until(() -> seen.getKeyspace("seen").getTable("t") != null, "CREATE TABLE");
		session.execute("ALTER TABLE seen.t ADD v int");
		until(() -> seen.getKeyspace("seen").getTable("t").getColumn("v") != null, "ALTER TABLE");
		session.execute("CREATE TYPE seen.u (a int)");
		until(() -> seen.getKeyspace("seen").getUserType("u") != null, "CREATE TYPE");
		session.execute("DROP KEYSPACE seen");
		until(() -> seen.getKeyspace("seen") == null, "DROP KEYSPACE");
	}

	static void restarts(Session session, String how) throws Exception
	{
		PreparedStatement write = session.prepare("INSERT INTO interop.kv (k, v) VALUES (?, ?)");
		PreparedStatement read = session.prepare("SELECT v FROM interop.kv WHERE k = ?");
		for (int i = 0; i < 300; i++)
			session.execute(write.bind(how + i, i));
		ask(how);
		until(() -> {
			try {
				session.execute("SELECT key FROM system.local");
				return true;
			} catch (RuntimeException error) {
				return false;
			}
		}, "reconnection");
		for (int i = 0; i < 300; i++)
			equal(session.execute(read.bind(how + i)).one().getInt(0), i);
	}

	public static void main(String[] arguments)
	{
		for (ProtocolVersion version : new ProtocolVersion[] {ProtocolVersion.V3, ProtocolVersion.V4}) {
			for (ProtocolOptions.Compression compression : ProtocolOptions.Compression.values()) {
				prefix = version.toString().toLowerCase() + " "
				    + compression.toString().toLowerCase() + " ";
				if (compression == ProtocolOptions.Compression.NONE)
					prefix = version.toString().toLowerCase() + " plain ";
				Session session;
				try {
					session = connect(version, compression);
				} catch (Throwable error) {
					say("FAIL " + prefix + "connect: " + error);
					continue;
				}
				check("connect and make the schema", () -> schema(session));
				check("types", () -> types(session));
				check("prepared, named, unset, ALTER TABLE", () -> prepared(session));
				check("paging", () -> paging(session));
				check("batches and counters", () -> batches(session));
				check("conditional statements", () -> conditional(session));
				check("1000 requests in flight", () -> concurrent(session));
				check("errors", () -> errors(session));
				check("tracing", () -> tracing(session));
				session.getCluster().close();
			}
		}
		prefix = "";
		Session session = connect(ProtocolVersion.V4, ProtocolOptions.Compression.LZ4);
		Session other = connect(ProtocolVersion.V3, ProtocolOptions.Compression.NONE);
		check("schema metadata", () -> metadata(session));
		check("schema events reach another session", () -> events(session, other));
		check("data and prepared after a restart", () -> restarts(session, "restart"));
		check("data and prepared after kill -9", () -> restarts(session, "kill"));
		check("schema events after both", () -> events(session, other));
		System.exit(0);
	}
}
