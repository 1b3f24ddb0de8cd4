use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::either::Either;
use wayleave_model::mapping::SourceKind;
use wayleave_store::Limits;

use super::super::login::Login;
use super::*;
use crate::dsn::{Dsn, Target};

async fn talk(name: &str) -> Talk {
    let server = wayleave_test::postgres().await;
    let database = server.fresh_database(name, "").await.unwrap();
    let dsn = Dsn::parse(SourceKind::Postgres, &database.dsn).unwrap();
    let Target::Postgres(server) = dsn.into_target() else {
        panic!("not a server")
    };
    let login = Login::open(&server, Limits::default(), None).await.unwrap();
    Talk::new(login.take().unwrap().0)
}

async fn number(talk: &mut Talk, text: &str) -> Result<i32, Failure> {
    let rows = talk.query::<String>(text, &[]).await?;
    let value = rows[0][0].as_deref().unwrap();
    Ok(i32::from_be_bytes(value.try_into().unwrap()))
}

#[tokio::test]
async fn rows_come_whole_however_many_and_however_long() {
    let mut talk = talk("talk_rows").await;
    let text = "SELECT n, repeat('x', n), NULL::text FROM generate_series(1, $1::int4) n";
    let statement = talk.prepare(text).await.unwrap();
    assert_eq!(statement.columns, [Type::INT4, Type::TEXT, Type::TEXT]);
    for most in [0, 1, 3_000] {
        talk.run(&statement, &[most]).await.unwrap();
        let mut expected = 0;
        while let Some(mut row) = talk.row().await.unwrap() {
            expected += 1;
            let number = row.value().unwrap().unwrap();
            assert_eq!(number, i32::to_be_bytes(expected));
            let text = row.value().unwrap().unwrap();
            assert_eq!(text.len(), usize::try_from(expected).unwrap());
            assert_eq!((row.value().unwrap(), row.bytes()), (None, 0));
        }
        assert_eq!(expected, most);
        assert!(talk.is_open());
    }
}

#[tokio::test]
async fn the_room_of_a_long_message_is_not_kept() {
    let mut talk = talk("talk_room").await;
    for length in [100, 8 * 1024 * 1024] {
        let text = format!("SELECT repeat('x', {length}), $1::text");
        let long = "y".repeat(length);
        let rows = talk.query(&text, &[long.as_str()]).await.unwrap();
        let lengths = rows[0].iter().map(|it| it.as_ref().map(Vec::len));
        assert!(lengths.eq([Some(length), Some(length)]));
        assert!(talk.is_open());
        // What was consumed of a buffer is no part of its capacity, but none is.
        assert!(talk.heard.capacity() <= KEPT && talk.said.capacity() <= KEPT);
    }
}

#[tokio::test]
async fn two_talks_name_their_statements_apart() {
    let (mut one, mut other) = (talk("talk_one").await, talk("talk_other").await);
    let text = "SELECT 1";
    let names = (
        one.prepare(text).await.unwrap(),
        other.prepare(text).await.unwrap(),
    );
    assert_ne!(names.0.name, names.1.name);
}

#[tokio::test]
async fn a_failure_is_told_in_the_servers_words_and_the_talk_goes_on() {
    let mut talk = talk("talk_failure").await;
    for text in [
        "SELECT nothing",
        "SELECT 1 / (n - 3) FROM generate_series(1, 9) n",
    ] {
        let Failure::Said { code, message } = number(&mut talk, text).await.unwrap_err() else {
            panic!("not said")
        };
        let expected = match code.code() {
            "42703" => "column \"nothing\" does not exist",
            _ => "division by zero",
        };
        assert_eq!(message, expected);
        assert!(talk.is_open());
        assert_eq!(number(&mut talk, "SELECT 7").await.unwrap(), 7);
    }
}

#[tokio::test]
async fn what_is_said_beside_an_answer_is_no_part_of_it() {
    let mut talk = talk("talk_aside").await;
    let noisy = "CREATE FUNCTION noisy(n int4) RETURNS int4 LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''%'', n; PERFORM set_config(''application_name'', n::text, false); \
        RETURN n; END'";
    talk.query::<String>(noisy, &[]).await.unwrap();
    let rows = talk
        .query::<String>("SELECT noisy(n) FROM generate_series(1, 100) n", &[])
        .await;
    assert_eq!(rows.unwrap().len(), 100);
    assert!(talk.is_open());
}

#[tokio::test]
async fn a_statement_that_is_let_go_is_gone() {
    let mut talk = talk("talk_forget").await;
    let statement = talk.prepare("SELECT 1").await.unwrap();
    talk.forget(&statement).unwrap();
    let kept = "SELECT count(*)::int4 FROM pg_prepared_statements WHERE name <> ''";
    assert_eq!(number(&mut talk, kept).await.unwrap(), 0);
    assert!(talk.run::<String>(&statement, &[]).await.is_ok());
    let Err(Failure::Said { code, .. }) = talk.row().await else {
        panic!("still there")
    };
    assert_eq!(code, SqlState::INVALID_SQL_STATEMENT_NAME);
}

#[tokio::test]
async fn a_talk_at_rest_learns_that_the_server_hung_up_and_one_under_way_is_not_used() {
    let (mut one, mut other) = (talk("talk_rest").await, talk("talk_rest_other").await);
    let backend = number(&mut one, "SELECT pg_backend_pid()").await.unwrap();
    assert!(one.is_open());
    let end = format!("SELECT pg_terminate_backend({backend}, 10000)::int4");
    assert_eq!(number(&mut other, &end).await.unwrap(), 1);
    // What has arrived is seen once the runtime has looked at its sockets.
    assert_eq!(number(&mut other, "SELECT 1").await.unwrap(), 1);
    assert!(!one.is_open());
    let statement = other.prepare("SELECT generate_series(1, 9)").await.unwrap();
    other.run::<String>(&statement, &[]).await.unwrap();
    assert!(!other.is_open());
}

/// What a talk makes of a server that answers everything with these bytes and hangs up.
async fn answered(bytes: &'static [u8]) -> Result<usize, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = BytesMut::new();
        stream.read_buf(&mut asked).await.unwrap();
        stream.write_all(bytes).await.unwrap();
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let mut talk = Talk::new(Either::Left(Either::Left(stream)));
    let statement = Statement {
        name: String::new(),
        columns: vec![Type::TEXT],
    };
    let answer = async {
        talk.run::<String>(&statement, &[]).await?;
        let mut rows = 0;
        while let Some(mut row) = talk.row().await? {
            for _ in 0..row.columns() {
                row.value()?;
            }
            rows += 1;
        }
        Ok(rows)
    };
    let answer = answer.await;
    server.await.unwrap();
    answer
}

#[tokio::test]
async fn what_is_no_message_or_not_whole_is_no_answer() {
    const ROW: &[u8] = b"2\0\0\0\x04D\0\0\0\x0c\0\x01\0\0\0\x02abC\0\0\0\x05\0Z\0\0\0\x05I";
    assert_eq!(answered(ROW).await.unwrap(), 1);
    for odd in [
        // Nothing, and less than all.
        &b""[..],
        b"D\0\0\0",
        b"D\0\0\0\x0c\0\x01\0\0\0\x02ab",
        // Lengths that cannot be.
        b"D\0\0\0\x03Z\0\0\0\x05I",
        b"D\xff\xff\xff\xffZ\0\0\0\x05I",
        b"D\x7f\xff\xff\xffZ\0\0\0\x05I",
        // Rows that say they hold more than they do.
        b"D\0\0\0\x05\0Z\0\0\0\x05I",
        b"D\0\0\0\x0c\0\x01\0\0\0\x03abZ\0\0\0\x05I",
        b"D\0\0\0\x0c\0\x02\0\0\0\x02abZ\0\0\0\x05I",
        // Rows whose end is not told, and one after it.
        b"2\0\0\0\x04Z\0\0\0\x05I",
        b"C\0\0\0\x05\0D\0\0\0\x0c\0\x01\0\0\0\x02abZ\0\0\0\x05I",
        // An answer to something else: bytes that are asked for, and a password.
        b"G\0\0\0\x07\0\0\0C\0\0\0\x05\0Z\0\0\0\x05I",
        b"R\0\0\0\x08\0\0\0\x03C\0\0\0\x05\0Z\0\0\0\x05I",
        // A failure that is none.
        b"E\0\0\0\x05XZ\0\0\0\x05I",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ] {
        let answer = answered(odd).await;
        assert!(
            matches!(answer, Err(Failure::Lost(_))),
            "{odd:?}: {answer:?}"
        );
    }
}
